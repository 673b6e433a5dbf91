package token

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdzv/envmap"
	"rdzv/rdzv/meet"
	"rdzv/rdzv/secret"
)

// platformEnvs are the environments of the last node of each platform, from package envmap.
func platformEnvs(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("../../../../envmap/testdata/platform-*-rank1.env")
	if err != nil || len(files) < 10 {
		t.Fatalf("environments of platforms: %d, %v", len(files), err)
	}
	envs := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var env []string
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
				env = append(env, line)
			}
		}
		envs[filepath.Base(file)] = env
	}
	return envs
}

func load(o Owner) error {
	_, err := o.Load(func(string) {}, nil)
	return err
}

// On every platform an agent of several does not create a token, and says how that platform gives
// all of them the same.
func TestTokenOfPlatforms(t *testing.T) {
	for name, environ := range platformEnvs(t) {
		home, root := t.TempDir(), os.DirFS(t.TempDir())
		env := envmap.ParseEnv(append(environ, "HOME="+home))
		p, err := envmap.DetectGiven(env, envmap.Given{Nodes: 3, Host: "node1", Root: root})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		platform := p.Platform
		if p.Launcher == envmap.None {
			platform = envmap.PlatformOf(env)
		}
		o := Owner{Env: env, Root: root, Platform: platform, Agents: 3}
		err = load(o)
		if want := envmap.TokenOn(platform); want == "" || hintOf(err) != want {
			t.Errorf("%s: %s: error %v, hint %q, want %q", name, platform, err, hintOf(err), want)
		}
		if left, _ := os.ReadDir(home); len(left) > 0 {
			t.Errorf("%s: files were created: %v", name, left)
		}
		o.Text = secret.NewToken()
		if err := load(o); err != nil {
			t.Errorf("%s: with RDZV_TOKEN: %v", name, err)
		}
		o.Text = ""
		if _, err := secret.LoadToken(secret.TokenSource{Home: home, UID: os.Geteuid()}); err != nil {
			t.Fatal(err)
		}
		if err := load(o); err != nil {
			t.Errorf("%s: with a token file: %v", name, err)
		}
	}
}

func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// A job of one node creates its token as elsewhere, and so does one outside a platform.
func TestTokenIsCreatedElsewhere(t *testing.T) {
	for name, o := range map[string]Owner{
		"one node": {Platform: "JobSet", OneHost: true}, "no platform": {},
	} {
		o.Env = envmap.Env{"HOME": t.TempDir()}
		if err := load(o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// In pods a token file cannot be copied; in a container it may not be possible.
func TestRemedyInContainers(t *testing.T) {
	const pods = "set the same RDZV_TOKEN in all pods of the job, from a Secret: " +
		"a token file of a pod is its own"
	for place, want := range map[Place]string{
		{Path: "/root/token", Pod: true}:                 pods,
		{Path: "RDZV_TOKEN", Pod: true, Container: true}: pods,
		{Path: "/root/token", Container: true}:           "; in containers set the same RDZV_TOKEN in all of them",
		{Path: "RDZV_TOKEN", Container: true}:            "prints on a terminal",
		{Path: "/home/u/.config/rdzv/token"}:             "prints on a terminal",
		{None: true}:                                     "give --insecure to all nodes, or to none",
	} {
		hint := place.Remedy(meet.DifferentToken{Host: "node1", Hosting: true})
		if !strings.HasSuffix(hint, want) {
			t.Errorf("%+v: hint %q, want %q at its end", place, hint, want)
		}
	}
}

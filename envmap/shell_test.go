package envmap

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// evaluate evaluates the text in a real shell and returns the resulting environment.
func evaluate(t *testing.T, shell, text string) []string {
	t.Helper()
	words := append(strings.Fields(shell), "-c", `eval "$1"; env -0`, "sh", text)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "OLD=x"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", shell, err, out, text)
	}
	return strings.Split(string(out), "\x00")
}

func TestShell(t *testing.T) {
	set := []KV{
		{"A", "plain"}, {"B", "it's"}, {"D", ""}, {"E_1", "'"}, {"F", "-n"}, {"G", "é\xff"},
		{"C", "$(touch /tmp/x) `id` \"q\" \\ ; & | \n second line\t"},
	}
	text := Shell(append(set, KV{"1BAD", "x"}, KV{"BAD-NAME", "x"}, KV{"", "x"}, KV{"PPID", "x"},
		KV{"X;touch /tmp/x", "x"}, KV{"NUL", "\x00"}), "OLD", "NOT THERE")
	env := evaluate(t, "/bin/sh", text)
	for _, kv := range set {
		if !slices.Contains(env, kv.Name+"="+kv.Value) {
			t.Errorf("%s is not %q in the environment %q", kv.Name, kv.Value, env)
		}
	}
	for _, name := range []string{"OLD=", "NUL=", "BAD", "1BAD"} {
		if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name) }) {
			t.Errorf("%s is set", name)
		}
	}
}

// No installed shell stops at a variable that it reserves. /bin/sh is always installed.
func TestReservedNamesOfShells(t *testing.T) {
	names := strings.Fields("PPID UID EUID GID EGID BASHOPTS SHELLOPTS BASH_VERSINFO OPTIND " +
		"LINENO HISTCMD SRANDOM _ IFS PS4 HISTSIZE RANDOM SECONDS ENV FUNCNAME")
	for _, shell := range []string{"/bin/sh", "bash", "bash --posix", "ksh", "zsh"} {
		if _, err := exec.LookPath(strings.Fields(shell)[0]); err != nil {
			continue
		}
		for _, name := range names {
			if env := evaluate(t, shell, Shell([]KV{{name, "a b"}, {"LAST", "reached"}},
				name)); !slices.Contains(env, "LAST=reached") {
				t.Errorf("%s stopped at %s", shell, name)
			}
		}
	}
}

func FuzzShell(f *testing.F) {
	for _, value := range []string{
		"", "'", "''", `\'`, "$(id)", "`id`", "a\nb", "\n\n", "$'", `"`, "\x7f\xfe", "!!", "~", "*",
	} {
		f.Add("NAME", value)
		f.Add(value, "x")
	}
	f.Add("OPTIND", "abc")
	f.Add("UID", "0")
	f.Fuzz(func(t *testing.T, name, value string) {
		if strings.ContainsRune(name, 0) || strings.ContainsRune(value, 0) {
			if text := Shell([]KV{{name, value}}); text != "" {
				t.Errorf("a NUL byte was written: %q", text)
			}
			return
		}
		if len(value) > 1000 || name == "PATH" || name == "OLD" || strings.HasPrefix(name, "LC_") ||
			strings.HasPrefix(name, "LD_") {
			return // these affect the command env
		}
		text := Shell([]KV{{name, value}, {"LAST", "reached"}})
		env := evaluate(t, "/bin/sh", text)
		if !slices.Contains(env, "LAST=reached") {
			t.Errorf("the shell stopped before the end: %q", text)
		}
		if shellName(name) && name != "LAST" && name != "PWD" &&
			!slices.Contains(env, name+"="+value) {
			t.Errorf("%s is not %q in %q", name, value, env)
		}
	})
}

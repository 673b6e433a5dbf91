package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// The layout names one index with an image for each architecture, whose entry point is its program.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(pack(t), "rdzv_1.0.0-rc.1_oci.tar")
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "-xf",
		archive).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Error(err)
	}
	m, err := top.IndexManifest()
	if err != nil || len(m.Manifests) != 1 ||
		m.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.0.0-rc.1" {
		t.Fatalf("index.json: %+v, %v", m, err)
	}
	index, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for i, d := range inner.Manifests {
		platforms = append(platforms, d.Platform.String())
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != d.Platform.Architecture ||
			!slices.Equal(config.Config.Entrypoint, []string{"/rdzv"}) ||
			!config.Created.Time.Equal(fake().time) {
			t.Errorf("%v: config %+v, %v", d.Platform, config, err)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%v: layers %v, %v", d.Platform, layers, err)
		}
		content, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		list := exec.CommandContext(t.Context(), "tar", "-xO", "rdzv")
		list.Stdin = content
		if out, err := list.Output(); err != nil || !bytes.Equal(out, fake().programs[i].data) {
			t.Errorf("%v: /rdzv is %q, %v", d.Platform, out, err)
		}
	}
	if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("platforms %s", got)
	}
}

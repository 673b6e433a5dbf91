package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeImage writes rdzv_VERSION_oci.tar: an OCI image layout
// (https://github.com/opencontainers/image-spec/blob/main/image-layout.md) with one index, in which
// each architecture has an image.
func writeImage(r release, dist string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.programs {
		image, err := imageOf(r, p)
		if err != nil {
			return fmt.Errorf("cannot make the image for %s: %w", p.arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.arch}}})
	}
	files, err := layoutOf(index, r.version.tag)
	if err != nil {
		return fmt.Errorf("cannot make the image: %w", err)
	}
	archive, err := archived(files, r.time)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("rdzv_%s_oci.tar", r.version.semantic)
	if err := os.WriteFile(filepath.Join(dist, name), archive, 0o644); err != nil {
		return fmt.Errorf("cannot write the image: %w", err)
	}
	return nil
}

// imageOf is an image from nothing but the program, which is /rdzv and its entry point. /tmp is
// there because "rdzv check" and "rdzv exec" keep the store's files in it.
func imageOf(r release, p program) (v1.Image, error) {
	content, err := archived([]file{
		{"rdzv", 0o755, p.data},
		{"LICENSE", 0o644, r.licence},
		{"THIRD_PARTY_LICENSES", 0o644, r.others},
		{"tmp/", 0o777 | fs.ModeSticky, nil},
	}, r.time)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression))
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image,
		types.OCIManifestSchema1), types.OCIConfigJSON), mutate.Addendum{Layer: layer,
		History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "make release"}})
	if err != nil {
		return nil, err
	}
	return configured(image, r, p)
}

// layoutOf are the files of an image layout whose one entry is the index. The annotations are the
// names that podman and containerd give it.
func layoutOf(index v1.ImageIndex, tag string) ([]file, error) {
	dir, err := os.MkdirTemp("", "rdzv-oci-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return nil, err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag,
		"io.containerd.image.name":          "localhost/rdzv:" + tag,
	})); err != nil {
		return nil, err
	}
	return read(os.DirFS(dir))
}

// read returns all files of a file system.
func read(fsys fs.FS) (files []file, err error) {
	err = fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, path)
		files = append(files, file{path, 0o644, data})
		return err
	})
	return files, err
}

// configured sets what a container runtime reads. PATH lets "rdzv install DIR" be written without a
// slash.
func configured(image v1.Image, r release, p program) (v1.Image, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", p.arch
	config.Created = v1.Time{Time: r.time}
	config.Config = v1.Config{
		Entrypoint: []string{"/rdzv"},
		Env:        []string{"PATH=/"},
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "rdzv",
			"org.opencontainers.image.description": summary,
			"org.opencontainers.image.version":     r.version.semantic,
			"org.opencontainers.image.revision":    r.commit,
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.created":     r.time.Format(time.RFC3339),
		},
	}
	return mutate.ConfigFile(image, config)
}

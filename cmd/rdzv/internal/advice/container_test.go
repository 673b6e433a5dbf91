package advice

import (
	"strings"
	"testing"
)

func TestContainerAdvice(t *testing.T) {
	for program, want := range map[string]string{
		"docker run --rm pytorch python3 main.py": "docker run ... IMAGE rdzv exec -- PROGRAM",
		"/usr/bin/podman run pytorch":             "podman run ... IMAGE rdzv exec -- PROGRAM",
		"podman --root /scratch/you run pytorch":  "podman run ... IMAGE rdzv exec -- PROGRAM",
		"podman --remote --root=/a run pytorch":   "podman run ... IMAGE rdzv exec -- PROGRAM",
		"docker container run pytorch":            "docker run ... IMAGE rdzv exec -- PROGRAM",
		"nerdctl run pytorch":                     "nerdctl run ... IMAGE rdzv exec -- PROGRAM",
		"podman-hpc run --gpu pytorch":            "podman-hpc run ... IMAGE rdzv exec -- PROGRAM",
		"podman-hpc shared-run pytorch":           "podman-hpc shared-run ... IMAGE rdzv exec -- PROGRAM",
		"docker exec -it trainer python3 main.py": "docker exec ... CONTAINER rdzv exec -- PROGRAM",

		"docker":                           "",
		"docker inspect run":               "",
		"podman build --file run .":        "",
		"python3 docker run":               "",
		"apptainer exec image.sif run":     "",
		"singularity run image.sif":        "",
		"ch-run /images/pytorch -- docker": "",
		"enroot start pytorch":             "",
	} {
		warning, got := Container(strings.Fields(program))
		if command, _, _ := strings.Cut(want, " ..."); got != want || !strings.Contains(warning, command) {
			t.Errorf("%s: %q, %q, want %q", program, warning, got, want)
		}
	}
}

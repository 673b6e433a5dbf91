package gpuuse

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rdzv/rdzv/status"
)

// tool is PATH with a program of this name that runs a shell script.
func tool(t *testing.T, name, script string) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{"PATH=" + dir + ":/usr/bin:/bin"}
}

func TestRead(t *testing.T) {
	const nvidia = `[ "$1 $2" = "--query-gpu=index,uuid,utilization.gpu,memory.used,memory.total --format=csv,noheader,nounits" ] || exit 1
echo "0, GPU-aa11, 93, 71234, 81559"
echo "1, GPU-bb22, [N/A], 0, 81559"
echo "2, GPU-cc33, 0, 4, 81559"`
	const amd = `echo '{"card1": {"GPU use (%)": "7", "VRAM Total Memory (B)": "64", "VRAM Total Used Memory (B)": "32"},
"system": {"Driver version": "6.1"}}'`
	for _, c := range []struct {
		what, vendor, name, script, entry string
		want                              *status.GPU
	}{
		{"index", "nvidia", "nvidia-smi", nvidia, "0", &status.GPU{Use: 0.93, MemoryUsed: 71234 << 20, Memory: 81559 << 20}},
		{"UUID", "nvidia", "nvidia-smi", nvidia, "GPU-cc33", &status.GPU{MemoryUsed: 4 << 20, Memory: 81559 << 20}},
		{"use unknown", "nvidia", "nvidia-smi", nvidia, "1", nil},
		{"no such GPU", "nvidia", "nvidia-smi", nvidia, "3", nil},
		{"device unknown", "nvidia", "nvidia-smi", nvidia, "", nil},
		{"card", "amd", "rocm-smi", amd, "1", &status.GPU{Use: 0.07, MemoryUsed: 32, Memory: 64}},
		{"another vendor's", "amd", "nvidia-smi", nvidia, "0", nil},
		{"failed", "nvidia", "nvidia-smi", nvidia + "\nexit 9", "0", nil},
		{"no vendor", "", "nvidia-smi", nvidia, "0", nil},
	} {
		got := Of(Read(t.Context(), c.vendor, tool(t, c.name, c.script)), c.entry)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

// A driver that hangs does not delay the answer.
func TestReadOfHangingTool(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if got := Read(ctx, "nvidia", tool(t, "nvidia-smi", "sleep 1000")); got != nil {
		t.Errorf("got %+v", got)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Package gpuuse tells how much the GPUs of this node are used, as nvidia-smi or rocm-smi says.
package gpuuse

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdzv/rdzv/status"
	"rdzv/wrap"
)

// GPU is one GPU. Its index and its UUID are those that a list of visible devices can contain.
type GPU struct {
	Index, UUID string
	status.GPU
}

// program is the one that knows the GPUs of a vendor, and how its output is read; nil if there is
// none.
func program(vendor string) (args []string, parse func(string) []GPU) {
	switch vendor {
	case "nvidia":
		return []string{
			"nvidia-smi", "--query-gpu=index,uuid,utilization.gpu,memory.used,memory.total",
			"--format=csv,noheader,nounits",
		}, parseNVIDIA
	case "amd":
		return []string{"rocm-smi", "--showuse", "--showmeminfo", "vram", "--json"}, parseAMD
	}
	return nil, nil
}

// Read asks the program of a vendor, which is looked for in PATH of an environment, until ctx ends.
// It returns nothing if there is none, or it does not answer.
func Read(ctx context.Context, vendor string, environ []string) []GPU {
	args, parse := program(vendor)
	if args == nil {
		return nil
	}
	path, err := wrap.Find(args[0], environ, "")
	if err != nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, path, args[1:]...)
	cmd.Env, cmd.WaitDelay = environ, 100*time.Millisecond
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	return parse(string(out))
}

// Of is the GPU with this entry of a list of visible devices; nil if it is not among all.
func Of(all []GPU, entry string) *status.GPU {
	i := slices.IndexFunc(all, func(g GPU) bool {
		return entry != "" && (g.Index == entry || g.UUID != "" && strings.HasPrefix(g.UUID, entry))
	})
	if i < 0 {
		return nil
	}
	return &all[i].GPU
}

// parseNVIDIA reads lines such as "0, GPU-7c2a..., 93, 71234, 81559", with memory in MiB. A GPU
// that does not tell its use, as one with MIG instances, is left out.
func parseNVIDIA(text string) (all []GPU) {
	for line := range strings.Lines(text) {
		words := strings.Split(line, ",")
		if len(words) != 5 {
			continue
		}
		for i := range words {
			words[i] = strings.TrimSpace(words[i])
		}
		use, errUse := strconv.ParseFloat(words[2], 64)
		used, errUsed := strconv.ParseInt(words[3], 10, 64)
		total, errTotal := strconv.ParseInt(words[4], 10, 64)
		if errUse == nil && errUsed == nil && errTotal == nil {
			all = append(all, GPU{words[0], words[1], status.GPU{
				Use: use / 100, MemoryUsed: used << 20, Memory: total << 20,
			}})
		}
	}
	return all
}

// parseAMD reads an object with "card0" and so on.
func parseAMD(text string) (all []GPU) {
	var cards map[string]map[string]string
	if json.Unmarshal([]byte(text), &cards) != nil {
		return nil
	}
	for name, card := range cards {
		index, isCard := strings.CutPrefix(name, "card")
		use, errUse := strconv.ParseFloat(card["GPU use (%)"], 64)
		used, errUsed := strconv.ParseInt(card["VRAM Total Used Memory (B)"], 10, 64)
		total, errTotal := strconv.ParseInt(card["VRAM Total Memory (B)"], 10, 64)
		if isCard && errUse == nil && errUsed == nil && errTotal == nil {
			all = append(all, GPU{index, "", status.GPU{Use: use / 100, MemoryUsed: used, Memory: total}})
		}
	}
	return all
}

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdzv/cmd/rdzv/internal/completion"
	"rdzv/internal/proctest"
)

// Every command and its flags are completed, with the texts of the help, and are in the part of the
// manual page about the command.
func TestEveryFlagIsDocumentedAndCompleted(t *testing.T) {
	man := strings.ReplaceAll(manual, `\-`, "-")
	overview := completed(t, "")
	for _, c := range allCommands() {
		if c.Hidden {
			continue
		}
		if want := "\n" + c.Name() + "\t" + c.Short + "\n"; !strings.Contains("\n"+overview, want) {
			t.Errorf("the commands are completed as\n%s, want %q in it", overview, want)
		}
		_, part, found := strings.Cut(man, "\n.SH rdzv "+c.Name()+"\n")
		part, _, _ = strings.Cut(part, "\n.SH ")
		if !found {
			t.Errorf("the manual page does not have the command %s", c.Name())
		}
		flags := completed(t, c.Name(), "--")
		for _, r := range c.rows() {
			if want := "\n--" + r.Name() + "\t" + r.Text + "\n"; !strings.Contains("\n"+flags, want) {
				t.Errorf("the flags of %s are completed as\n%s, want %q in it", c.Name(), flags, want)
			}
			if !regexp.MustCompile("--" + r.Name() + "[^a-z-]").MatchString(part) {
				t.Errorf("the manual page does not have rdzv %s --%s", c.Name(), r.Name())
			}
		}
	}
}

// completed is what rdzv tells shells when the last of some words is completed.
func completed(t *testing.T, words ...string) string {
	t.Helper()
	r := runRdzv(t, nil, append([]string{"__complete"}, words...)...)
	if r.code != 0 {
		t.Fatalf("rdzv __complete %q: %+v", words, r)
	}
	return r.stdout
}

// A tab in a real shell completes commands, flags, fixed values, files and directories, and what
// follows the program as the shell does. Ctrl-X p prints the line.
func TestCompletionInShells(t *testing.T) {
	for name, shell := range map[string]struct{ program, start string }{
		"bash": {"bash --norc --noprofile -i", `bind 'set enable-bracketed-paste off'; ` +
			`bind -x '"\C-xp": echo "words: $READLINE_LINE,"; READLINE_LINE='; . ./_rdzv`},
		"zsh": {"zsh -f -i", `fpath=($PWD $fpath); autoload -U compinit; compinit -u -D; ` +
			`print-line() { print -r -- "words: $BUFFER,"; BUFFER=; zle accept-line }; ` +
			`zle -N print-line; bindkey '^Xp' print-line`},
	} {
		t.Run(name, func(t *testing.T) {
			program := strings.Fields(shell.program)
			if _, err := exec.LookPath(program[0]); err != nil {
				t.Skipf("%s is not installed", name)
			}
			dir := t.TempDir()
			script, err := completion.Script(name)
			fatalIf(t, err)
			fatalIf(t, os.WriteFile(filepath.Join(dir, "_rdzv"), []byte(script), 0o600))
			fatalIf(t, os.Mkdir(filepath.Join(dir, "subdir"), 0o700))
			fatalIf(t, os.WriteFile(filepath.Join(dir, "subfile"), nil, 0o600))
			master, slave := proctest.OpenTerminal(t)
			defer master.Close()
			cmd := exec.CommandContext(t.Context(), program[0], program[1:]...)
			cmd.Dir, cmd.Env = dir, append(baseEnv(dir), "TERM=dumb")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			fatalIf(t, cmd.Start())
			slave.Close()
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			fatalIf(t, master.SetDeadline(time.Now().Add(time.Minute)))
			fmt.Fprintln(master, shell.start)
			checkTabs(t, master)
		})
	}
}

// checkTabs types words and a tab in the shell of a terminal.
func checkTabs(t *testing.T, terminal io.ReadWriter) {
	t.Helper()
	lines := bufio.NewReader(terminal)
	for typed, want := range map[string]string{
		"get": "get-rank", "exec --captu": "exec --capture", "exec --chdir sub": "exec --chdir subdir",
		"exec --log-dir sub": "exec --log-dir subdir", "exec --report subf": "exec --report subfile",
		"exec --device l": "exec --device local-rank", "exec --device=l": "exec --device=local-rank",
		"install sub": "install subdir", "help get": "help get-rank", "completion b": "completion bash",
		"exec subf": "exec subfile", "exec --nodes 2 -- ls subf": "exec --nodes 2 -- ls subfile",
		"check --nodes 2 --tag ls subf": "check --nodes 2 --tag ls subfile",
		"exec --capture never ls subf":  "exec --capture never ls subfile",
		"exec --device=mask ls subf":    "exec --device=mask ls subfile", "status subf": "status subf",
	} {
		fmt.Fprintf(terminal, "rdzv %s\t\x18p", typed)
		for words := ""; words == ""; {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("after %q and a tab: %v", typed, err)
			}
			if _, found, is := strings.Cut(line, "words: "); is && !strings.Contains(line, "$") {
				words, _, _ = strings.Cut(found, ",")
				if strings.TrimRight(words, " /") != "rdzv "+want {
					t.Errorf("%q is completed to %q, want %q", typed, words, want)
				}
			}
		}
	}
}

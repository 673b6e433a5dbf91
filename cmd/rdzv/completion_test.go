package main

import (
	"bufio"
	"fmt"
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

// The manual page and each completion have every command, and its flags in its part.
func TestEveryFlagIsDocumentedAndCompleted(t *testing.T) {
	commands := allCommands().listed()
	man := strings.ReplaceAll(manual, `\-`, "-")
	for _, c := range []struct{ what, text, command, flag string }{
		{"manual page", man, `\.SH rdzv COMMAND\n`,
			`(?m)^\.SH rdzv COMMAND\n(?:(?:[^.]|\.[^S]|\.SS|$).*\n)*.*--FLAG[^a-z-]`},
		{"bash completion", completion.Bash(commands), `words=".*COMMAND`,
			`\tCOMMAND\) words=".*--FLAG[^a-z-]`},
		{"zsh completion", completion.Zsh(commands), `'COMMAND:`,
			`(?m)^\tCOMMAND\)\n(?:\t\t.*\n)*.*--FLAG[^a-z-]`},
		{"fish completion", completion.Fish(commands), ` -a COMMAND -d`,
			`__fish_seen_subcommand_from COMMAND'(?: -s .)? -l FLAG `},
	} {
		has := func(pattern, command, flag string) bool {
			pattern = strings.NewReplacer("COMMAND", command, "FLAG", flag).Replace(pattern)
			return regexp.MustCompile(pattern).MatchString(c.text)
		}
		for _, command := range commands {
			if !has(c.command, command.Name, "") {
				t.Errorf("the %s does not have the command %s", c.what, command.Name)
			}
			for _, r := range command.Rows() {
				if !has(c.flag, command.Name, r.Name()) {
					t.Errorf("the %s does not have rdzv %s --%s", c.what, command.Name, r.Name())
				}
			}
		}
	}
}

// A tab in a real zsh completes commands, flags, fixed values, files and directories.
func TestZshCompletion(t *testing.T) {
	if _, err := exec.LookPath("zsh"); err != nil {
		t.Skip("zsh is not installed")
	}
	dir := t.TempDir()
	fatalIf(t, os.WriteFile(filepath.Join(dir, "_rdzv"), []byte(completion.Zsh(allCommands().listed())), 0o600))
	fatalIf(t, os.Mkdir(filepath.Join(dir, "subdir"), 0o700))
	fatalIf(t, os.WriteFile(filepath.Join(dir, "subfile"), nil, 0o600))
	master, slave := proctest.OpenTerminal(t)
	defer master.Close()
	zsh := exec.CommandContext(t.Context(), "zsh", "-f", "-i")
	zsh.Dir, zsh.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TERM=dumb"}
	zsh.Stdin, zsh.Stdout, zsh.Stderr = slave, slave, slave
	fatalIf(t, zsh.Start())
	slave.Close()
	defer func() {
		_ = zsh.Process.Kill()
		_ = zsh.Wait()
	}()
	fatalIf(t, master.SetDeadline(time.Now().Add(time.Minute)))
	fmt.Fprintln(master, `fpath=($PWD $fpath); autoload -U compinit; compinit -u -D`)
	fmt.Fprintln(master, `rdzv() { print -r -- "words: $*," }`)
	lines := bufio.NewReader(master)
	for typed, want := range map[string]string{
		"get": "get-rank", "exec --captu": "exec --capture", "exec --chdir sub": "exec --chdir subdir",
		"exec --log-dir sub": "exec --log-dir subdir", "exec --report subf": "exec --report subfile",
		"exec --device l": "exec --device local-rank", "install sub": "install subdir",
	} {
		fmt.Fprintf(master, "rdzv %s\t\n", typed)
		for words := ""; words == ""; {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("zsh after %q and a tab: %v", typed, err)
			}
			if _, found, is := strings.Cut(line, "words: "); is && !strings.Contains(line, "$") {
				words, _, _ = strings.Cut(found, ",")
				if strings.TrimRight(words, " ") != want {
					t.Errorf("zsh has completed %q to %q, want %q", typed, words, want)
				}
			}
		}
	}
}

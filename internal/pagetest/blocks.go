package pagetest

import (
	"regexp"
	"strings"
)

// A Block is an indented block of a page that shows its readers what to type, each line a command
// that can be copied, or what is printed, or a file. HTML comments before it, which readers do not
// see, say more:
//
//	<!-- output -->              what the last command before it prints, on a terminal
//	<!-- output, on node2 -->    what the last command on that node prints
//	<!-- the file NAME -->       a file
//	<!-- on node2 -->            commands on that node, instead of node1
//	<!-- meanwhile, on node2 --> the same, while the last command before it still runs
//	<!-- not run: REASON -->     why the tests do not type the commands
//	<!-- first, on node1: X -->  a command that makes the state in which the block is shown
type Block struct {
	Text      string // without its indentation
	File      string // its name, if the block shows one
	Output    bool
	Node      int // 0 if no comment names it
	Meanwhile bool
	NotRun    string
	First     []Command
}

// A Command is a line to type on a node.
type Command struct {
	Node int
	Line string
}

var (
	blockOrComment = regexp.MustCompile(`(?m)^ *<!-- .* -->$|^ {4,}.*\n(?:\n* {4,}.*\n)*`)
	blockComment   = regexp.MustCompile(`^ *<!-- ` +
		`(not run|first|the file|output|meanwhile|on node[12])(?:,? on node([12]))?:? ?(.*) -->$`)
)

// Blocks are the blocks of a page, in order.
func Blocks(page string) (blocks []Block) {
	var next Block
	for _, part := range blockOrComment.FindAllString(page, -1) {
		if m := blockComment.FindStringSubmatch(part); m != nil {
			next.comment(m[1], m[2], m[3])
		} else if !strings.HasPrefix(strings.TrimLeft(part, " "), "<!-- ") {
			next.Text = unindented(part)
			blocks, next = append(blocks, next), Block{}
		}
	}
	return blocks
}

// comment adds what a comment before the block says.
func (b *Block) comment(kind, node, text string) {
	number := 0
	if node != "" {
		number = int(node[0] - '0')
	}
	switch kind {
	case "not run":
		b.NotRun = text
	case "first":
		b.First = append(b.First, Command{number, text})
	case "the file":
		b.File = text
	case "output":
		b.Output, b.Node = true, number
	case "meanwhile":
		b.Meanwhile, b.Node = true, number
	default:
		b.Node = int(kind[len(kind)-1] - '0')
	}
}

// unindented is a block without the spaces with which its first line begins.
func unindented(block string) string {
	indent := block[:len(block)-len(strings.TrimLeft(block, " "))]
	var text strings.Builder
	for line := range strings.Lines(block) {
		text.WriteString(strings.TrimPrefix(line, indent))
	}
	return text.String()
}

// Commands are the lines to type, each with what follows it after a backslash.
func (b Block) Commands() []Command {
	if b.Output || b.File != "" {
		return nil
	}
	var commands []Command
	whole := regexp.MustCompile(`\\\n *`).ReplaceAllString(b.Text, "")
	for line := range strings.Lines(whole) {
		if line = strings.TrimSpace(line); line != "" {
			commands = append(commands, Command{max(1, b.Node), line})
		}
	}
	return commands
}

package program

import "strings"

// options are the arguments of python that determine what it runs and where it searches for
// modules.
type options struct {
	script   string   // "" if there is none, or a module or a text is run
	module   string   // "" if none is run
	rest     []string // the arguments after the script, module or text
	isolated bool     // PYTHON* variables or the user's packages are ignored
}

// parseOptions parses the arguments of python.
func parseOptions(args []string) (o options) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "-":
			o.rest = args
			return o
		case !strings.HasPrefix(arg, "-"):
			o.script, o.rest = arg, args
			return o
		case arg == "--check-hash-based-pycs":
			args = args[min(1, len(args)):]
		case strings.HasPrefix(arg, "--"):
		default:
			end, takesNext := o.parseShort(arg[1:])
			if end == 'm' && takesNext && len(args) > 0 {
				o.module = args[0]
			}
			if takesNext {
				args = args[min(1, len(args)):]
			}
			if end != 0 {
				o.rest = args
				return o
			}
		}
	}
	return o
}

// parseShort parses letters behind one "-". end is the letter that ends python's options, 0 if none
// does; takesNext says that the last one has the next word as its argument.
func (o *options) parseShort(letters string) (end rune, takesNext bool) {
	for i, letter := range letters {
		last := i == len(letters)-1
		switch letter {
		case 'c', 'm': // what follows is the text or module, and arguments for it
			if letter == 'm' {
				o.module = letters[i+1:]
			}
			return letter, last
		case 'W', 'X':
			return 0, last
		case 'E', 'I', 's':
			o.isolated = true
		}
	}
	return 0, false
}

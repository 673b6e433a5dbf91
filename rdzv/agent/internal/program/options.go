package program

import "strings"

// options are the options of python that determine where it searches for modules.
type options struct {
	script   string // "" if there is none, or a module or a text is run
	inDir    bool   // it is a module or a text, so that the working directory is searched
	noEnv    bool   // PYTHON* variables are ignored
	noUser   bool   // packages in the user's home directory are ignored
	noScript bool   // neither the script's directory nor the working directory is searched
}

// parseOptions parses the arguments of python.
func parseOptions(args []string) (o options) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "-":
			o.inDir = true
			return o
		case !strings.HasPrefix(arg, "-"):
			o.script = arg
			return o
		case arg == "--check-hash-based-pycs":
			args = args[min(1, len(args)):]
		case strings.HasPrefix(arg, "--"):
		default:
			end, takesNext := o.parseShort(arg[1:])
			if end {
				return o
			}
			if takesNext {
				args = args[min(1, len(args)):]
			}
		}
	}
	return o
}

// parseShort parses letters behind one "-". end says that python's options end with them, takesNext
// that the last one has the next word as its argument.
func (o *options) parseShort(letters string) (end, takesNext bool) {
	for i, letter := range letters {
		switch letter {
		case 'c', 'm': // what follows is for the program
			o.inDir = true
			return true, false
		case 'W', 'X':
			return false, i == len(letters)-1
		case 'I':
			o.noEnv, o.noUser, o.noScript = true, true, true
		case 'E':
			o.noEnv = true
		case 's':
			o.noUser = true
		case 'P':
			o.noScript = true
		}
	}
	return false, false
}

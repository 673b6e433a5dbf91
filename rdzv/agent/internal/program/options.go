package program

import (
	"path"
	"slices"
	"strings"
)

// options are the arguments of python that determine what it runs and where it searches for
// modules.
type options struct {
	script   string   // "" if there is none, or a module or a text is run
	isModule bool     // a module is run
	module   string   // which
	rest     []string // the arguments after the script, module or text
	inDir    bool     // it is a module or a text, so that the working directory is searched
	noEnv    bool     // PYTHON* variables are ignored
	noUser   bool     // packages in the user's home directory are ignored
	noScript bool     // neither the script's directory nor the working directory is searched
}

// parseOptions parses the arguments of python.
func parseOptions(args []string) (o options) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "-":
			o.inDir = true
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
			if end && takesNext && o.isModule && len(args) > 0 {
				o.module = args[0]
			}
			if takesNext {
				args = args[min(1, len(args)):]
			}
			if end {
				o.rest = args
				return o
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
		case 'c', 'm': // what follows is the text or module, and arguments for it
			o.inDir, o.isModule = true, letter == 'm'
			if o.isModule {
				o.module = letters[i+1:]
			}
			return true, i == len(letters)-1
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

// searchesDir tells whether the working directory is searched for modules.
func (o options) searchesDir() bool { return o.inDir && !o.noScript }

// Name is how people call a program: the name of its script without .py, its module, or else its
// own name. Only its words are known: a script that runs another one has its own name.
func Name(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	script := argv[0]
	switch o := parseOptions(afterPython(argv)); {
	case o.script != "":
		script = o.script
	case o.module != "":
		return o.module
	case slices.Contains(shellNames, path.Base(argv[0])):
		if file, _ := parseShell(argv[1:]); file != "" {
			script = file
		}
	}
	return strings.TrimSuffix(path.Base(script), ".py")
}

// afterPython are the arguments of the python in a command line; nil if there is none.
func afterPython(argv []string) []string {
	if words := fromPython(argv); len(words) > 0 {
		return words[1:]
	}
	return nil
}

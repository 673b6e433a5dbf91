package program

import "strings"

// shellOptions are the single-letter options of shells that have no value.
const shellOptions = "abefhiklmnpruvxBCEHPT"

// parseShell returns the script that a shell runs with these arguments, and the arguments of the
// script; "" if it runs a text (-c), reads its input, or has an option that is not known.
//
// Source: the manual pages of bash 5.2 and dash 0.5.12.
func parseShell(args []string) (script string, rest []string) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		letters, isOption := strings.CutPrefix(arg, "-")
		if !isOption {
			letters, isOption = strings.CutPrefix(arg, "+")
		}
		switch {
		case arg == "-" || arg == "--":
			if len(args) == 0 {
				return "", nil
			}
			return args[0], args[1:]
		case arg == "--rcfile" || arg == "--init-file":
			args = args[min(1, len(args)):]
		case arg == "--norc" || arg == "--noprofile" || arg == "--login" || arg == "--posix":
		case !isOption:
			return arg, args
		default:
			for _, letter := range letters {
				switch {
				case letter == 'o' || letter == 'O': // its value is a word of its own
					args = args[min(1, len(args)):]
				case !strings.ContainsRune(shellOptions, letter):
					return "", nil
				}
			}
		}
	}
	return "", nil
}

package envmap

// Error is a placement, a device list or a request that makes no sense. Text is the message; Hint, which may be empty,
// is what the user can do, for a line of its own.
type Error struct {
	Text string
	Hint string
}

func (e *Error) Error() string { return e.Text }

const hintLauncher = "--launcher NAME says which launcher to believe, --launcher none believes none"

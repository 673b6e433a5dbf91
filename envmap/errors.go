package envmap

// An Error reports a contradictory placement, a malformed device list or an impossible request.
type Error struct {
	Text string // the message
	Hint string // what the user can do, for a line of its own; may be empty
}

func (e *Error) Error() string { return e.Text }

const hintLauncher = "select the launcher with --launcher NAME, or ignore all with --launcher none"

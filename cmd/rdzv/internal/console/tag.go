package console

import (
	"fmt"
	"os"

	"rdzv/cmd/rdzv/internal/visible"
)

// Tags returns a function that makes what is before each line of a rank on a host: in a colour of
// the rank if both streams are terminals that show colours.
func Tags(stdout, stderr *os.File, s Setting) func(rank int, host string) string {
	screen := ScreenOf(stdout, s)
	screen.colour = screen.colour && ScreenOf(stderr, s).colour
	colours := []string{"36", "32", "35", "34"} // red is for errors
	return func(rank int, host string) string {
		tag := fmt.Sprintf("[%d %s]", rank, visible.Line(host))
		return screen.coloured(colours[rank%len(colours)], tag) + " "
	}
}

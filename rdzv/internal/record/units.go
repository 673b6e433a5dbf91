package record

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Seconds is a duration. Its JSON form is a number of seconds.
type Seconds time.Duration

func (s Seconds) String() string { return time.Duration(s).String() }

// Seconds is the duration as a number of seconds.
func (s Seconds) Seconds() float64 { return time.Duration(s).Seconds() }

// Rounded is the duration in whole seconds, for people.
func (s Seconds) Rounded() time.Duration { return time.Duration(s).Round(time.Second) }

func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(s.Seconds()) }

func (s *Seconds) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	if f = math.Round(f * float64(time.Second)); math.Abs(f) >= math.MaxInt64 {
		return fmt.Errorf("cannot read %.64q as a duration: out of range", b)
	}
	*s = Seconds(f)
	return nil
}

// Signal is the number of a signal; 0 is none. Its text is its name.
type Signal int

const unnamed = "signal " // precedes the number of a signal that has no name

// String is "SIGKILL" for 9, and "" for 0.
func (s Signal) String() string {
	if s == 0 {
		return ""
	}
	if name := unix.SignalName(syscall.Signal(s)); name != "" {
		return name
	}
	return unnamed + strconv.Itoa(int(s))
}

func (s Signal) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Signal) UnmarshalText(b []byte) error {
	if number, is := strings.CutPrefix(string(b), unnamed); is {
		n, err := strconv.Atoi(number)
		*s = Signal(n)
		return err
	}
	if *s = Signal(unix.SignalNum(string(b))); *s == 0 && len(b) > 0 {
		return fmt.Errorf("cannot read the name of a signal: %.64q", b)
	}
	return nil
}

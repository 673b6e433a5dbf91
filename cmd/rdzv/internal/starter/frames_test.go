package starter

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"rdzv/cmd/rdzv/internal/console"
)

func reports() []Report {
	code := 7
	return []Report{
		{Hello: "node1"}, {}, {Store: []string{"10.0.0.1:29600", "[fd00::1]:29600"}},
		{Line: &Line{Failure, console.Record{Kind: "error", Text: "rank 3 failed\nsecond"}}},
		{Output: &Output{2, 70000, []byte("a\x00\xff\n")}}, {Output: &Output{Stream: 1}}, {Taken: 3},
		{File: "report.json", Text: []byte{0xff}}, {Exit: &code},
	}
}

// What is sent arrives, however the stream is divided.
func TestReportsArrive(t *testing.T) {
	var stream bytes.Buffer
	to := sender{to: &stream}
	for _, r := range reports() {
		if err := to.send(r); err != nil {
			t.Fatal(err)
		}
	}
	from := iotest.OneByteReader(&stream)
	for _, want := range reports() {
		got, err := receiveReport(from)
		if want.Output != nil && want.Output.Text == nil {
			want.Output.Text = []byte{}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("received %+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := receiveReport(from); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// A stream that ends within a frame, or is another program's, is an error.
func TestForeignStreams(t *testing.T) {
	whole, err := frameOf(Report{Hello: "node1"})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(whole); n++ {
		if _, err := receiveReport(bytes.NewReader(whole[:n])); err != io.ErrUnexpectedEOF {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\n", "\x00\x00\x00\x00", "\x00\x00\x00\x01x", "\x00\x00\x00\x02j{",
		"\x00\x00\x00\x03o\x01\x00", "\x00\x00\x00\x07o\x03\x00\x00\x00\x00x", "\xff\xff\xff\xff",
	} {
		if r, err := receiveReport(strings.NewReader(text)); !errors.Is(err, errForeign) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
	if _, err := frameOf(Order{Input: make([]byte, maxFrame)}); err == nil {
		t.Error("a frame above the limit is sent")
	}
}

// FuzzFrames: what is read from outside is understood as it is sent again, or is an error.
func FuzzFrames(f *testing.F) {
	for _, r := range reports() {
		b, err := frameOf(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	start, err := frameOf(Order{Start: &Start{Nodes: 2, Program: []string{"sh"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(start)
	f.Add([]byte("Welcome to node2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if report, err := receiveReport(bytes.NewReader(text)); err == nil {
			again, err := frameOf(report)
			if err != nil {
				t.Fatal(err)
			}
			second, err := receiveReport(bytes.NewReader(again))
			if err != nil || !reflect.DeepEqual(report.Output, second.Output) || asText(report) != asText(second) {
				t.Errorf("%+v becomes %+v, %v", report, second, err)
			}
		}
		if order, err := receiveOrder(bytes.NewReader(text)); err == nil {
			again, err := frameOf(order)
			if err != nil {
				t.Fatal(err)
			}
			if second, err := receiveOrder(bytes.NewReader(again)); err != nil || asText(order) != asText(second) {
				t.Errorf("%+v becomes %+v, %v", order, second, err)
			}
		}
	})
}

func asText(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

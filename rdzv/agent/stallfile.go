package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"rdzv/rdzv/agent/internal/host"
)

// writeReport writes the report of a stall beside the logs, and notes its file in the event.
func (s *stallWatch) writeReport(ctx context.Context, e *Stalled) {
	c := s.local.Config
	if c.LogDir == "" {
		return
	}
	name := filepath.Join(filepath.Dir(s.logFiles().File(0)), fmt.Sprintf("stall-%d.txt", e.Number))
	text := c.DescribeStall(*e)
	ctx, cancel := context.WithTimeout(ctx, logWait)
	defer cancel()
	_, err := host.Await(ctx, func() {}, func() (struct{}, error) {
		return struct{}{}, os.WriteFile(name, []byte(text), 0o666)
	})
	if err != nil {
		s.events.diagnose(Warning, fmt.Errorf("cannot write the report of the stall: %w", err))
		return
	}
	e.File = name
}

// describeStall is the default of Config.DescribeStall.
func describeStall(e Stalled) string {
	text, err := json.MarshalIndent(stalledFormOf(e), "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text) + "\n"
}

package store

import (
	"os"
	"testing"
	"time"
)

func TestStart(t *testing.T) {
	for range 3 {
		t0 := time.Now()
		d := t.TempDir()
		s, err := Start(t.Context(), Config{Dir: d})
		if err != nil {
			t.Fatal(err)
		}
		t.Log("started", time.Since(t0))
		_, err = s.Client().Put(t.Context(), "a", "b")
		t.Log("put", time.Since(t0), err)
		t1 := time.Now()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		t.Log("closed", time.Since(t1))
		es, _ := os.ReadDir(d)
		t.Log(es)
	}
}

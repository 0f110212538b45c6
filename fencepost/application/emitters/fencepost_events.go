// Package events writes what an application does, one JSON line an event. Copy this file; it needs Go alone.
// One Writer for each producer or consumer: w.Write("processed", events.F{"topic": "orders", "partition": 0, "offset": 41})
package events
import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)
type F map[string]any
type Writer struct {
	file    *os.File
	process string
	n       int
	lock    sync.Mutex
}
func Open(path, name, group string) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil { return nil, err }
	w := &Writer{file: file, process: fmt.Sprintf("%s-%d", name, os.Getpid())}
	return w, w.Write("started", F{"version": 1, "group": group})
}
// Write writes one line. key, value: []byte or string, of which hashes are written; nil bytes are left out.
func (w *Writer) Write(event string, fields F) error {
	w.lock.Lock(); defer w.lock.Unlock()
	line := F{"process": w.process, "n": w.n}
	for name, value := range fields {
		if text, ok := value.(string); ok && (name == "key" || name == "value") { value = []byte(text) }
		if data, ok := value.([]byte); ok && data == nil { continue } else if ok { sum := sha256.Sum256(data); value = hex.EncodeToString(sum[:8]) }
		line[name] = value
	}
	w.n++
	text, _ := json.Marshal(line)
	_, err := fmt.Fprintf(w.file, "{\"event\":%q,%s\n", event, text[1:]) // one write
	return err
}
// Close ends in order: every result has been written.
func (w *Writer) Close() error { _ = w.Write("stopped", nil); return w.file.Close() }

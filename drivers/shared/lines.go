// What the drivers in Go share: lines in, lines out, and one goroutine for each client
// (docs/reference/drivers.md).
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	mostLine, mostClients, mostUnderWay, mostText, mostPolled = 1 << 20, 64, 20_000, 2_000, 500_000
)

// Fields are those of a line.
type Fields map[string]any

// Place is a partition, and an offset in it.
type Place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// Record is one that a poll hands out. Bytes are base64 in JSON.
type Record struct {
	Topic       string   `json:"topic"`
	Partition   int32    `json:"partition"`
	Offset      int64    `json:"offset"`
	Key         []byte   `json:"key"`
	Value       []byte   `json:"value"`
	Headers     [][2]any `json:"headers"`
	TimestampMs int64    `json:"timestamp_ms"`
	LeaderEpoch int32    `json:"leader_epoch"`
}

func (r *Record) size() int {
	size := len(r.Key) + len(r.Value)
	for _, header := range r.Headers {
		value, _ := header[1].([]byte)
		size += len(value)
	}
	return size
}

// Topic is one that is to be created.
type Topic struct {
	Name              string            `json:"name"`
	Partitions        int32             `json:"partitions"`
	ReplicationFactor int16             `json:"replication_factor"`
	Config            map[string]string `json:"config"`
}

// Command is one line that was read.
type Command struct {
	Id          *int            `json:"id"`
	Command     string          `json:"command"`
	Client      string          `json:"client"`
	Role        string          `json:"role"`
	Config      json.RawMessage `json:"config"`
	Topic       string          `json:"topic"`
	Partition   *int32          `json:"partition"`
	Key         []byte          `json:"key"`
	Value       []byte          `json:"value"`
	Headers     [][2]*string    `json:"headers"`
	TimestampMs *int64          `json:"timestamp_ms"`
	TimeoutMs   int             `json:"timeout_ms"`
	MaxRecords  int             `json:"max_records"`
	Offset      int64           `json:"offset"`
	Mode        string          `json:"mode"`
	Offsets     []Place         `json:"offsets"`
	Partitions  []Place         `json:"partitions"`
	Topics      json.RawMessage `json:"topics"`
	Consumer    string          `json:"consumer"`
}

// Config is what `open` was given; nil is the library's own default.
type Config struct {
	Bootstrap, Compression, Isolation, Assignor, Group            string
	TransactionalId, OffsetReset, ClientId, GroupInstanceId, Rack string
	RequestTimeoutMs, MetadataMaxAgeMs, RetryBackoffMs, Acks      *int
	InFlight, LingerMs, BatchBytes, BatchRecords, Retries         *int
	DeliveryTimeoutMs, TransactionTimeoutMs, AutoCommitIntervalMs *int
	SessionTimeoutMs, HeartbeatIntervalMs, MaxPollIntervalMs      *int
	FetchMaxWaitMs, FetchMinBytes, FetchMaxBytes, MaxPollRecords  *int
	Idempotence, AutoCommit                                       *bool
	Extra                                                         map[string]any
}

// Client does commands. done is called once for each, from any goroutine.
type Client interface {
	Do(c *Command, done func(fields Fields, err error))
}

// Refused means that nothing was asked of the library.
type Refused struct{ Expected, Seen string }

func (r Refused) Error() string { return "expected " + r.Expected + ", saw " + r.Seen }

// Library is what a driver gives to serve.
type Library struct {
	Ready   Fields
	Open    map[string]func(name string, config Config) (Client, error)
	Roles   map[string][]string // commands of each role
	Config  []string
	ErrorOf func(err error) Fields
}

var (
	began = time.Now()
	out   = bufio.NewWriterSize(os.Stdout, 1<<16)
	lock  sync.Mutex
	open  = map[int]bool{}
)

func now() int64 { return int64(time.Since(began)) }

func write(fields Fields) {
	line, _ := json.Marshal(fields)
	lock.Lock()
	defer lock.Unlock()
	out.Write(append(line, '\n'))
	out.Flush()
}

// Happened writes a line that answers no command.
func Happened(event, client string, fields Fields) {
	fields["event"], fields["client"], fields["at_ns"], fields["wall_ns"] = event, client, now(),
		time.Now().UnixNano()
	write(fields)
}

// Version is that of a module as it was built.
func Version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, one := range info.Deps {
		if one.Path == module {
			return strings.TrimPrefix(one.Version, "v")
		}
	}
	return "unknown"
}

// Ms is a time from a setting.
func Ms(value int) time.Duration { return time.Duration(value) * time.Millisecond }

// Set hands a setting on, if it was given.
func Set[T any](value *int, convert func(int) T, to *T) {
	if value != nil {
		*to = convert(*value)
	}
}

// Int, Int32 and the like convert settings.
func Int(value int) int { return value }

// OneOf is what a value means to the library.
func OneOf[T any](value string, table map[string]T, what string) (found T, err error) {
	found, ok := table[value]
	if !ok {
		names := []string{}
		for name := range table {
			names = append(names, name)
		}
		slices.Sort(names)
		err = Refused{"a " + what + " of " + strings.Join(names, ", "), value}
	}
	return
}

// Bounded is as many of these records as fit a line, and the rest.
func Bounded(records []*Record) ([]*Record, []*Record) {
	size, records := 0, append([]*Record{}, records...)
	for count, one := range records {
		if size += one.size(); size > mostPolled && count > 0 {
			return records[:count], records[count:]
		}
	}
	return records, nil
}

// Bytes are those of a header's value.
func Bytes(value *string) []byte {
	if value == nil {
		return nil
	}
	decoded, _ := base64.StdEncoding.DecodeString(*value)
	return decoded
}

// Shown is an error as lines have it. of: what the library calls it.
func Shown(err error, of func(error) Fields) Fields {
	shown := Fields{"code": nil, "fatal": false, "text": cut(err.Error()), "name": fmt.Sprintf("%T", err)}
	for key, value := range of(err) {
		shown[key] = value
	}
	return shown
}

func cut(text string) string { return text[:min(len(text), mostText)] }

func refuse(c *Command, refused Refused) {
	write(Fields{"event": "refused", "id": c.Id, "command": cut(c.Command), "expected": refused.Expected,
		"seen": cut(refused.Seen)})
}

type worker struct {
	client Client
	queue  chan *Command
}

func (w *worker) run(name string, library *Library, gone func()) {
	for c := range w.queue {
		start := now()
		done := func(fields Fields, err error) {
			lock.Lock()
			delete(open, *c.Id)
			lock.Unlock()
			if refused, ok := err.(Refused); ok {
				refuse(c, refused)
				return
			}
			event := Fields{"event": "done", "id": *c.Id, "client": name, "command": c.Command,
				"ok": err == nil, "invoked_ns": start,
				"completed_ns": now(), "wall_ns": time.Now().UnixNano()}
			for key, value := range fields {
				event[key] = value
			}
			if err != nil {
				event["error"] = Shown(err, library.ErrorOf)
			}
			write(event)
		}
		switch c.Command {
		case "open":
			client, ignored, err := opened(name, c, library)
			w.client = client
			if err != nil {
				gone()
				done(nil, err)
				return
			}
			done(Fields{"ignored": ignored}, nil)
		case "close":
			gone()
			w.client.Do(c, done)
			return
		default:
			w.client.Do(c, done)
		}
	}
}

func opened(name string, c *Command, library *Library) (Client, []string, error) {
	given, ignored := map[string]any{}, []string{}
	json.Unmarshal(c.Config, &given)
	renamed := map[string]any{}
	for key, value := range given {
		renamed[strings.ReplaceAll(key, "_", "")] = value
		if value != nil && !slices.Contains(library.Config, key) {
			ignored = append(ignored, key)
		}
	}
	content, _ := json.Marshal(renamed)
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	config := Config{}
	if err := decoder.Decode(&config); err != nil {
		return nil, nil, Refused{"settings of docs/reference/drivers.md", err.Error()}
	}
	if config.Bootstrap == "" {
		return nil, nil, Refused{"a bootstrap address", "none"}
	}
	if config.Extra != nil && !slices.Contains(library.Config, "extra") {
		return nil, nil, Refused{"no settings in the library's own words", "extra"}
	}
	client, err := library.Open[c.Role](name, config)
	return client, ignored, err
}

// Serve reads commands until there are no more.
func Serve(library Library) {
	commands := []string{"open", "close", "clock", "quit"}
	for _, own := range library.Roles {
		commands = append(commands, own...)
	}
	slices.Sort(commands)
	commands = slices.Compact(commands)
	roles := []string{}
	for role := range library.Open {
		roles = append(roles, role)
	}
	ready := Fields{"event": "ready", "protocol": 1, "commands": commands, "roles": roles,
		"config":  library.Config,
		"runtime": runtime.Version(), "now_ns": now(), "wall_ns": time.Now().UnixNano()}
	for key, value := range library.Ready {
		ready[key] = value
	}
	write(ready)
	workers, own := map[string]*worker{}, map[string][]string{}
	input := bufio.NewReaderSize(os.Stdin, mostLine)
	for {
		line, err := input.ReadSlice('\n')
		if err != nil {
			return
		}
		c := &Command{}
		if err := json.Unmarshal(line, c); err != nil {
			refuse(c, Refused{"a command as one JSON object", err.Error()})
		} else if !take(c, &library, commands, workers, own) {
			return
		}
	}
}

func take(c *Command, library *Library, commands []string, workers map[string]*worker,
	own map[string][]string) bool {
	lock.Lock()
	w, most := workers[c.Client], len(open)
	lock.Unlock()
	var refused *Refused
	switch {
	case !slices.Contains(commands, c.Command):
		refused = &Refused{"one of " + strings.Join(commands, ", "), c.Command}
	case c.Id == nil:
		refused = &Refused{"an integer id", "none"}
	case c.Command == "quit" || c.Command == "clock":
		write(Fields{"event": "done", "id": *c.Id, "command": c.Command, "ok": true, "invoked_ns": now(),
			"completed_ns": now(),
			"now_ns":       now(), "wall_ns": time.Now().UnixNano()})
		return c.Command == "clock"
	case c.Command == "open" && (w != nil || c.Client == "" || len(workers) >= mostClients):
		refused = &Refused{"a name that is not open, of at most 64", c.Client}
	case c.Command == "open" && library.Open[c.Role] == nil:
		refused = &Refused{"a known role", c.Role}
	case c.Command != "open" && w == nil:
		refused = &Refused{"a client that is open", c.Client}
	case c.Command != "open" && c.Command != "close" && !slices.Contains(own[c.Client], c.Command):
		refused = &Refused{"one of " + strings.Join(own[c.Client], ", ") + " of this client", c.Command}
	case most >= mostUnderWay:
		refused = &Refused{fmt.Sprint("at most ", mostUnderWay, " commands under way"), "more"}
	}
	if refused != nil {
		refuse(c, *refused)
		return true
	}
	lock.Lock()
	defer lock.Unlock()
	open[*c.Id] = true
	if c.Command == "open" {
		w = &worker{queue: make(chan *Command, mostUnderWay+1)}
		workers[c.Client], own[c.Client] = w, library.Roles[c.Role]
		go w.run(c.Client, library, func() {
			lock.Lock()
			delete(workers, c.Client)
			lock.Unlock()
		})
	}
	w.queue <- c
	return true
}

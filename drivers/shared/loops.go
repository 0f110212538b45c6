// The commands of consumers and admin clients in Go, in terms of a few methods of each library's driver.
package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Reader is a consumer.
type Reader interface {
	Subscribe(topics []string) error
	Assign(of []Place) error
	Poll(c *Command) []*Record
	Seek(to Place) error
	Commit(c *Command, done func(Fields, error))
	Committed(of []Place) ([]Place, error)
	Close() error
}

// Pauser is a consumer that can pause what it is assigned.
type Pauser interface {
	Pause() error
	Resume() error
}

// Read does a command of a consumer.
func Read(k Reader, c *Command, done func(Fields, error)) {
	switch c.Command {
	case "subscribe", "resubscribe":
		topics := []string{}
		json.Unmarshal(c.Topics, &topics)
		done(nil, k.Subscribe(topics))
	case "assign":
		done(nil, k.Assign(c.Partitions))
	case "poll":
		done(Fields{"records": k.Poll(c)}, nil)
	case "pause":
		done(nil, k.(Pauser).Pause())
	case "resume":
		done(nil, k.(Pauser).Resume())
	case "seek":
		done(nil, k.Seek(Place{c.Topic, *c.Partition, c.Offset}))
	case "commit":
		k.Commit(c, done)
	case "committed":
		rows, err := k.Committed(c.Partitions)
		done(Fields{"offsets": rows}, err)
	case "close":
		done(nil, k.Close())
	}
}

// Handed is the next offset of each partition that polls have handed out; the keys have offset 0.
type Handed map[Place]int64

// Mark notes that these records were handed out.
func (h Handed) Mark(records []*Record) {
	for _, one := range records {
		h[Place{one.Topic, one.Partition, 0}] = one.Offset + 1
	}
}

// Offsets are those of a commit or, without any, everything that was handed out.
func (h Handed) Offsets(c *Command) []Place {
	offsets := c.Offsets
	for where, next := range h {
		if c.Offsets == nil {
			offsets = append(offsets, Place{where.Topic, where.Partition, next})
		}
	}
	return offsets
}

// Pushed are the records of a library that pushes them: each waits until a poll takes it.
type Pushed struct {
	records chan *Record
	of      sync.Map
	kept    *Record
}

// NewPushed has no records.
func NewPushed() *Pushed { return &Pushed{records: make(chan *Record)} }

// Push hands over a record, with what the library knows it as; whether a poll takes it before the end.
func (p *Pushed) Push(until context.Context, one *Record, of any) bool {
	p.of.Store(one, of)
	select {
	case p.records <- one:
		return true
	case <-until.Done():
		p.of.Delete(one)
		return false
	}
}

// Drop forgets a record of this partition that did not fit a poll.
func (p *Pushed) Drop(where Place) {
	if p.kept != nil && p.kept.Topic == where.Topic && p.kept.Partition == where.Partition {
		p.kept = nil
	}
}

// Take is a poll, within its bounds; taken is called for each record.
func (p *Pushed) Take(c *Command, taken func(one *Record, of any)) []*Record {
	records, size, deadline := []*Record{}, 0, time.After(Ms(c.TimeoutMs))
	for len(records) < min(c.MaxRecords, 1000) {
		one := p.kept
		p.kept = nil
		if one == nil && len(records) > 0 {
			select {
			case one = <-p.records:
			case <-time.After(2 * time.Millisecond):
				return records
			}
		} else if one == nil {
			select {
			case one = <-p.records:
			case <-deadline:
				return records
			}
		}
		if size += one.size(); size > mostPolled && len(records) > 0 {
			p.kept = one
			return records
		}
		records = append(records, one)
		of, _ := p.of.LoadAndDelete(one)
		taken(one, of)
	}
	return records
}

// Admin is an admin client.
type Admin interface {
	Create(one Topic) error
	Delete(names []string) (map[string]error, error)
	Describe(names []string) ([]Described, error)
	Configs(topic string) (map[string]string, error)
	Alter(topic string, config map[string]string) error
	Close() error
}

// Described is what an admin client says of a topic.
type Described struct {
	Name       string
	Err        error
	Partitions []Fields
}

// Administer does a command of an admin client. shown: an error as lines have it.
func Administer(a Admin, c *Command, done func(Fields, error), shown func(error) Fields) {
	names, rows, config := []string{}, []Fields{}, map[string]string{}
	json.Unmarshal(c.Topics, &names)
	row := func(name string, err error) Fields {
		if err == nil {
			return Fields{"name": name, "error": nil}
		}
		return Fields{"name": name, "error": shown(err)}
	}
	switch c.Command {
	case "create_topics":
		topics := []Topic{}
		json.Unmarshal(c.Topics, &topics)
		for _, one := range topics {
			rows = append(rows, row(one.Name, a.Create(one)))
		}
		done(Fields{"topics": rows}, nil)
	case "delete_topics":
		said, err := a.Delete(names)
		for name, one := range said {
			rows = append(rows, row(name, one))
		}
		done(Fields{"topics": rows}, err)
	case "describe_topics":
		said, err := a.Describe(names)
		for _, one := range said {
			described := row(one.Name, one.Err)
			described["partitions"] = one.Partitions
			rows = append(rows, described)
		}
		done(Fields{"topics": rows}, err)
	case "describe_configs":
		said, err := a.Configs(c.Topic)
		done(Fields{"config": said}, err)
	case "alter_configs":
		json.Unmarshal(c.Config, &config)
		done(nil, a.Alter(c.Topic, config))
	case "close":
		done(nil, a.Close())
	}
}

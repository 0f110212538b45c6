// The session: a consumer of a group and a producer in one, whose transactions have its offsets.
package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

type session struct {
	*consumer
	session *kgo.GroupTransactSession
}

func newSession(name string, given Config) (Client, error) {
	reading, err := newConsumer(name, given)
	if err != nil {
		return nil, err
	}
	options, err := writing(given)
	s := &session{consumer: reading.(*consumer)}
	s.options = append(s.options, options...)
	return s, err
}

func (s *session) Subscribe(topics []string) (err error) {
	s.session, err = kgo.NewGroupTransactSession(append(s.options, kgo.ConsumeTopics(topics...))...)
	if err == nil {
		s.client = s.session.Client()
	}
	return err
}

func (s *session) Do(c *Command, done func(Fields, error)) {
	if s.client == nil && c.Command != "subscribe" && c.Command != "close" {
		done(nil, Refused{"a session with a subscription", c.Command})
		return
	}
	switch c.Command {
	case "append":
		(&producer{client: s.client, ctx: context.Background()}).Do(c, done)
	case "begin":
		done(nil, s.session.Begin())
	case "commit_transaction", "abort_transaction":
		try := kgo.TransactionEndTry(c.Command == "commit_transaction")
		committed, err := s.session.End(context.Background(), try)
		done(Fields{"committed": committed}, err)
	case "close":
		if s.session != nil {
			s.session.Close()
		}
		done(nil, nil)
	default:
		Read(s, c, done)
	}
}

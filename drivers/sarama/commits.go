// The consumer's commands, and its commits.
package main

import (
	"errors"

	"github.com/IBM/sarama"
)

func (k *consumer) Do(c *Command, done func(Fields, error)) { Read(k, c, done) }

func (k *consumer) Assign(of []Place) (err error) {
	for _, one := range of {
		err = errors.Join(err, k.assign(one))
	}
	return err
}

func (k *consumer) Poll(c *Command) []*Record { return k.pushed.Take(c, k.taken) }

func (k *consumer) Pause() error {
	k.members.PauseAll()
	return nil
}

func (k *consumer) Resume() error {
	k.members.ResumeAll()
	return nil
}

func (k *consumer) Seek(to Place) error {
	if k.members != nil {
		return Refused{"a consumer with assigned partitions: sarama's groups cannot seek",
			"a member of a group"}
	}
	return k.assign(to)
}

func (k *consumer) Commit(c *Command, done func(Fields, error)) {
	k.lock.Lock() // of what was handed out only: sarama itself is called without a lock, as users do
	session, offsets := k.session, k.marked.Offsets(c)
	k.lock.Unlock()
	if session == nil {
		done(nil, errors.New("no session of a group"))
		return
	}
	for _, one := range offsets {
		if c.Offsets != nil {
			session.ResetOffset(one.Topic, one.Partition, one.Offset, "") // backwards
		}
		session.MarkOffset(one.Topic, one.Partition, one.Offset, "") // forwards
	}
	session.Commit()
	done(Fields{"reported": false, "offsets": offsets}, nil)
}

func (k *consumer) Committed(of []Place) ([]Place, error) {
	admin, err := sarama.NewClusterAdminFromClient(k.client)
	if err != nil {
		return nil, err
	}
	asked := map[string][]int32{}
	for _, one := range of {
		asked[one.Topic] = append(asked[one.Topic], one.Partition)
	}
	said, err := admin.ListConsumerGroupOffsets(k.group, asked)
	if err != nil {
		return nil, err
	}
	for number, one := range of {
		block := said.GetBlock(one.Topic, one.Partition)
		if block == nil || block.Err != sarama.ErrNoError {
			return nil, errors.New("no offset in the answer")
		}
		of[number].Offset = block.Offset
	}
	return of, nil
}

func (k *consumer) Close() (err error) {
	for _, end := range k.pulled {
		end()
	}
	if k.members != nil {
		k.stop()
		err = k.members.Close()
		<-k.finished
	}
	k.client.Close()
	return err
}

func unjoined(err error) error {
	var refused Refused
	if errors.As(err, &refused) {
		return refused
	}
	return err
}

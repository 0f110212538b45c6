// The admin client.
package main

import (
	"errors"
	"strings"

	"github.com/IBM/sarama"
)

type admin struct{ client sarama.ClusterAdmin }

func newAdmin(name string, given Config) (Client, error) {
	made, err := configured(name, given)
	if err != nil {
		return nil, unjoined(err)
	}
	client, err := sarama.NewClusterAdmin(strings.Split(given.Bootstrap, ","), made)
	return admin{client}, err
}

func (a admin) Do(c *Command, done func(Fields, error)) {
	Administer(a, c, done, func(err error) Fields {
		var topic *sarama.TopicError // a type of its own, which is not always shown by errors.As
		if errors.As(err, &topic) {
			err = topic.Err
		}
		return trouble(err)
	})
}

func (a admin) Create(one Topic) error {
	detail := &sarama.TopicDetail{NumPartitions: one.Partitions,
		ReplicationFactor: one.ReplicationFactor, ConfigEntries: map[string]*string{}}
	for name, value := range one.Config {
		detail.ConfigEntries[name] = &value
	}
	return a.client.CreateTopic(one.Name, detail, false)
}

func (a admin) Delete(names []string) (map[string]error, error) {
	rows := map[string]error{}
	for _, name := range names {
		rows[name] = a.client.DeleteTopic(name)
	}
	return rows, nil
}

func (a admin) Describe(names []string) ([]Described, error) {
	rows := []Described{}
	said, err := a.client.DescribeTopics(names)
	for _, topic := range said {
		partitions := []Fields{}
		for _, one := range topic.Partitions {
			partitions = append(partitions, Fields{"partition": one.ID, "leader": one.Leader,
				"replicas": one.Replicas, "isr": one.Isr})
		}
		row := Described{topic.Name, nil, partitions}
		if topic.Err != sarama.ErrNoError {
			row.Err = topic.Err
		}
		rows = append(rows, row)
	}
	return rows, err
}

func (a admin) Configs(topic string) (map[string]string, error) {
	config := map[string]string{}
	said, err := a.client.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
	for _, entry := range said {
		config[entry.Name] = entry.Value
	}
	return config, err
}

func (a admin) Alter(topic string, config map[string]string) error {
	entries := map[string]*string{}
	for name, value := range config {
		entries[name] = &value
	}
	return a.client.AlterConfig(sarama.TopicResource, topic, entries, false)
}

func (a admin) Close() error { return a.client.Close() }

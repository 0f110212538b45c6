// The admin client.
package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
)

type admin struct{ client *kadm.Client }

func (a admin) Do(c *Command, done func(Fields, error)) { Administer(a, c, done, trouble) }

func (a admin) Create(one Topic) error {
	given := map[string]*string{}
	for name, value := range one.Config {
		given[name] = &value
	}
	said, err := a.client.CreateTopics(context.Background(), one.Partitions, one.ReplicationFactor, given,
		one.Name)
	if err == nil {
		err = said[one.Name].Err
	}
	return err
}

func (a admin) Delete(names []string) (map[string]error, error) {
	rows := map[string]error{}
	said, err := a.client.DeleteTopics(context.Background(), names...)
	for _, one := range said {
		rows[one.Topic] = one.Err
	}
	return rows, err
}

func (a admin) Describe(names []string) ([]Described, error) {
	rows := []Described{}
	said, err := a.client.ListTopics(context.Background(), names...)
	for _, topic := range said.Sorted() {
		partitions := []Fields{}
		for _, one := range topic.Partitions.Sorted() {
			partitions = append(partitions, Fields{"partition": one.Partition, "leader": one.Leader,
				"replicas": one.Replicas, "isr": one.ISR})
		}
		rows = append(rows, Described{topic.Topic, topic.Err, partitions})
	}
	return rows, err
}

func (a admin) Configs(topic string) (map[string]string, error) {
	config := map[string]string{}
	said, err := a.client.DescribeTopicConfigs(context.Background(), topic)
	for _, one := range said {
		for _, entry := range one.Configs {
			config[entry.Key] = entry.MaybeValue()
		}
		if err == nil {
			err = one.Err
		}
	}
	return config, err
}

func (a admin) Alter(topic string, config map[string]string) error {
	changes := []kadm.AlterConfig{}
	for name, value := range config {
		changes = append(changes, kadm.AlterConfig{Name: name, Value: &value})
	}
	said, err := a.client.AlterTopicConfigs(context.Background(), changes, topic)
	for _, one := range said {
		if err == nil {
			err = one.Err
		}
	}
	return err
}

func (a admin) Close() error {
	a.client.Close()
	return nil
}

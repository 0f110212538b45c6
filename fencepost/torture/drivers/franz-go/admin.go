package main

import (
	"context"
	"encoding/json"

	"github.com/twmb/franz-go/pkg/kadm"
)

type admin struct{ client *kadm.Client }

func row(name string, err error) Fields {
	if err == nil {
		return Fields{"name": name, "error": nil}
	}
	return Fields{"name": name, "error": trouble(err)}
}

func (a admin) Do(c *Command, done func(Fields, error)) {
	names, rows, config, ctx := []string{}, []Fields{}, map[string]string{}, context.Background()
	json.Unmarshal(c.Topics, &names)
	switch c.Command {
	case "create_topics":
		topics := []Topic{}
		json.Unmarshal(c.Topics, &topics)
		for _, one := range topics {
			given := map[string]*string{}
			for name, value := range one.Config {
				given[name] = &value
			}
			said, err := a.client.CreateTopics(ctx, one.Partitions, one.ReplicationFactor, given, one.Name)
			if err == nil {
				err = said[one.Name].Err
			}
			rows = append(rows, row(one.Name, err))
		}
		done(Fields{"topics": rows}, nil)
	case "delete_topics":
		said, err := a.client.DeleteTopics(ctx, names...)
		for _, one := range said {
			rows = append(rows, row(one.Topic, one.Err))
		}
		done(Fields{"topics": rows}, err)
	case "describe_topics":
		said, err := a.client.ListTopics(ctx, names...)
		for _, topic := range said.Sorted() {
			partitions := []Fields{}
			for _, one := range topic.Partitions.Sorted() {
				partitions = append(partitions, Fields{"partition": one.Partition, "leader": one.Leader, "replicas": one.Replicas, "isr": one.ISR})
			}
			shown := row(topic.Topic, topic.Err)
			shown["partitions"] = partitions
			rows = append(rows, shown)
		}
		done(Fields{"topics": rows}, err)
	case "describe_configs":
		said, err := a.client.DescribeTopicConfigs(ctx, c.Topic)
		for _, topic := range said {
			for _, entry := range topic.Configs {
				config[entry.Key] = entry.MaybeValue()
			}
			if err == nil {
				err = topic.Err
			}
		}
		done(Fields{"config": config}, err)
	case "alter_configs":
		json.Unmarshal(c.Config, &config)
		changes := []kadm.AlterConfig{}
		for name, value := range config {
			changes = append(changes, kadm.AlterConfig{Name: name, Value: &value})
		}
		said, err := a.client.AlterTopicConfigs(ctx, changes, c.Topic)
		for _, one := range said {
			if err == nil {
				err = one.Err
			}
		}
		done(nil, err)
	case "close":
		a.client.Close()
		done(nil, nil)
	}
}

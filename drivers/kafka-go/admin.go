// The admin client.
package main

import (
	"context"
	"strings"

	"github.com/segmentio/kafka-go"
)

type admin struct{ client *kafka.Client }

func newAdmin(name string, given Config) (Client, error) {
	return admin{&kafka.Client{Addr: kafka.TCP(strings.Split(given.Bootstrap, ",")...)}}, nil
}

func (a admin) Do(c *Command, done func(Fields, error)) { Administer(a, c, done, trouble) }

func (a admin) Create(one Topic) error {
	made := kafka.TopicConfig{Topic: one.Name, NumPartitions: int(one.Partitions),
		ReplicationFactor: int(one.ReplicationFactor)}
	for name, value := range one.Config {
		made.ConfigEntries = append(made.ConfigEntries,
			kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	said, err := a.client.CreateTopics(context.Background(),
		&kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{made}})
	if err == nil {
		err = said.Errors[one.Name]
	}
	return err
}

func (a admin) Delete(names []string) (map[string]error, error) {
	said, err := a.client.DeleteTopics(context.Background(), &kafka.DeleteTopicsRequest{Topics: names})
	if err != nil {
		return nil, err
	}
	return said.Errors, nil
}

func (a admin) Describe(names []string) ([]Described, error) {
	said, err := a.client.Metadata(context.Background(), &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return nil, err
	}
	rows := []Described{}
	for _, topic := range said.Topics {
		partitions := []Fields{}
		for _, one := range topic.Partitions {
			partitions = append(partitions, Fields{"partition": one.ID, "leader": one.Leader.ID,
				"replicas": ids(one.Replicas), "isr": ids(one.Isr)})
		}
		rows = append(rows, Described{topic.Name, topic.Error, partitions})
	}
	return rows, nil
}

func (a admin) Configs(topic string) (map[string]string, error) {
	config := map[string]string{}
	said, err := a.client.DescribeConfigs(context.Background(),
		&kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
			{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic}}})
	if err == nil {
		err = said.Resources[0].Error
		for _, entry := range said.Resources[0].ConfigEntries {
			config[entry.ConfigName] = entry.ConfigValue
		}
	}
	return config, err
}

func (a admin) Alter(topic string, config map[string]string) error {
	resource := kafka.AlterConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic}
	for name, value := range config {
		resource.Configs = append(resource.Configs, kafka.AlterConfigRequestConfig{Name: name, Value: value})
	}
	said, err := a.client.AlterConfigs(context.Background(),
		&kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{resource}})
	if err == nil {
		for _, one := range said.Errors {
			err = one
		}
	}
	return err
}

func (a admin) Close() error { return nil }

func ids(brokers []kafka.Broker) []int {
	numbers := []int{}
	for _, one := range brokers {
		numbers = append(numbers, one.ID)
	}
	return numbers
}

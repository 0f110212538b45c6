module example.com/control

go 1.21

require github.com/twmb/franz-go v1.18.0

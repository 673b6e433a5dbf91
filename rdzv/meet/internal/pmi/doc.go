// Package pmi is a client of PMI-1, by which the tasks of a job that Hydra has started tell each
// other a few short values.
//
// What the agents tell each other by it, and what they do before and after, does not belong here.
package pmi

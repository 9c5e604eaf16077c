"""Schedules that know no model: Gibbs sampling and mean field, and how their runs are mapped and kept."""

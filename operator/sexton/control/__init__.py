"""The operator at work: what the API server shows goes into a cache, decisions come out and are carried out.

The way of the data: `watching` (Schedules) and `observing` (Jobs, records) fill `cache`; `queue` says which Schedule
is to be looked at and when; `reconciling` asks `deciding` what to do and has `executing` do it, after `looking` live
where the cache may be late.
"""

import { invalid } from '../../../core/errors.ts'
import { createDownsample } from '../../../core/hosts/downsample.ts'
import { defaultPoints, type HostMetrics, type HostMetricsQuery } from '../../../core/protocol/http/hosts.ts'
import { isoTime } from '../../../disk/clock.ts'
import { keptFor } from '../../storage/ports/presence.ts'
import { type Context, notFound } from '../context.ts'

const defaultRange = 24 * 3600_000

/** A host's history, thinned out as it is read, so that a week of it needs little memory (contract §3). */
export async function readHostMetrics(
  { store, history, clock }: Context,
  id: number,
  query: HostMetricsQuery,
): Promise<HostMetrics> {
  if (!(await store.get('hosts', id))) throw notFound('host', id)
  const now = clock.now()
  const askedTo = query.to === undefined ? now : Date.parse(query.to)
  const askedFrom = query.from === undefined ? Math.min(askedTo, now) - defaultRange : Date.parse(query.from)
  if (askedFrom > askedTo) throw invalid([{ field: 'from', message: 'must not be after to' }])
  const oldest = now - keptFor
  // Points are spent on the time of which there can be history.
  const from = askedTo < oldest ? askedFrom : Math.max(askedFrom, oldest)
  const to = from > now ? askedTo : Math.min(askedTo, now)
  const downsample = createDownsample({ from, to, points: query.points ?? defaultPoints })
  for await (const sample of history.read(id, from, to)) downsample.add(sample)
  return { hostId: id, from: isoTime(from), to: isoTime(to), samples: downsample.samples() }
}

import type { FieldFault } from '../../core/errors.ts'
import { unknownName } from '../../core/text/nearest.ts'
import { anySchedule, type WebhookFilter, webhookFilters } from '../../core/webhooks/webhook.ts'
import type { Store } from '../storage/ports/store.ts'
import type { FilterRecord, WebhookRecord } from '../storage/records/webhook.ts'

/** A record as seen by an event; `name` is null if it was deleted. */
interface Named {
  readonly id: number
  readonly name: string | null
}

/** Schedule, stored script and user of a task or schedule; null if none. */
export type Origin = Readonly<Record<WebhookFilter, Named | null>>

type Names = { readonly [F in WebhookFilter]?: string | null | undefined }
type Filters = { [F in WebhookFilter]?: NonNullable<WebhookRecord[F]> | null }

/** Names considered for the hint about an unknown one. */
const mostForNearest = 100

/** Finds the record with this name, ignoring case; if there is none, lists other names. */
async function found(store: Store, filter: WebhookFilter, name: string) {
  const where = { equals: { name: name.toLowerCase() } }
  const limit = mostForNearest
  if (filter === 'schedule' || filter === 'script') {
    const noun = filter === 'schedule' ? 'schedules' : 'scripts'
    const [record] = (await store.query(noun, { where, limit: 1 })).items
    const others = record ? [] : (await store.query(noun, { limit })).items
    return { record, names: others.map((each) => each.name) }
  }
  const username = { equals: { username: name.toLowerCase() } }
  const [user] = (await store.query('users', { where: username, limit: 1 })).items
  const others = user ? [] : (await store.query('users', { limit })).items
  return { record: user && { id: user.id, name: user.username }, names: others.map((each) => each.username) }
}

/**
 * Resolves the filters of a request, and collects faults. Omitted fields stay absent, as do those repeated
 * from `visible` whose record was deleted.
 */
export async function readFilters(
  store: Store,
  names: Names,
  visible: Names = {},
): Promise<{ filters: Filters; faults: FieldFault[] }> {
  const filters: Filters = {}
  const faults: FieldFault[] = []
  for (const filter of webhookFilters) {
    const name = names[filter]
    if (name === undefined) continue
    if (name === null) filters[filter] = null
    else if (filter === 'schedule' && name === anySchedule) filters[filter] = anySchedule
    else {
      const { record, names: others } = await found(store, filter, name)
      if (record) filters[filter] = { id: record.id, name: record.name }
      else if (name !== visible[filter])
        faults.push({
          field: filter,
          message: unknownName(filter === 'createdBy' ? 'user' : filter, name, others),
        })
    }
  }
  return { filters, faults }
}

/** Filters by their current names; for a deleted record, its name when the filter was set. */
export async function filtersToApi(
  store: Pick<Store, 'get'>,
  { schedule = null, script = null, createdBy = null }: Pick<WebhookRecord, WebhookFilter>,
): Promise<Record<WebhookFilter, string | null>> {
  const currentName = async (
    filter: FilterRecord | null,
    read: (id: number) => Promise<string | undefined>,
  ) => filter && ((await read(filter.id)) ?? filter.name)
  return {
    schedule:
      schedule === anySchedule
        ? schedule
        : await currentName(schedule, async (id) => (await store.get('schedules', id))?.name),
    script: await currentName(script, async (id) => (await store.get('scripts', id))?.name),
    createdBy: await currentName(createdBy, async (id) => (await store.get('users', id))?.username),
  }
}

/** The id follows renames; the name matches a schedule that was deleted and created again. */
export function passes(filters: Pick<WebhookRecord, WebhookFilter>, origin: Origin): boolean {
  return webhookFilters.every((name) => {
    const filter = filters[name] ?? null
    const of = origin[name]
    if (filter === null) return true
    if (of === null || filter === anySchedule) return of !== null
    return filter.id === of.id || filter.name.toLowerCase() === of.name?.toLowerCase()
  })
}

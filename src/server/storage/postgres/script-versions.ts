import type { Age } from '../../../disk/agreed-clock.ts'
import { isoTime } from '../../../disk/clock.ts'
import { maxVersions, type ScriptVersions } from '../ports/store.ts'
import type { ScriptRecord } from '../records/script.ts'
import type { Ask, Database } from './connection/database.ts'

const day = 24 * 3600_000

/** One row per version. Versions of missing scripts have the time at which they were moved aside. */
export function createScriptVersions(database: Database, most: number = maxVersions): ScriptVersions {
  const ask: Ask = (statement, values) => database.ask('api', statement, values)

  async function moveAside(exists: (id: number) => Promise<boolean>, now: number): Promise<string | null> {
    const there = await ask<{ script_id: number }>(
      'select distinct script_id from rsm.script_versions where aside_at is null',
    )
    const gone: number[] = []
    // Ids are never reused, so that a script missing now will not appear later.
    for (const { script_id: id } of there) if (!(await exists(id))) gone.push(id)
    if (gone.length === 0) return null
    const at = isoTime(now)
    await ask('update rsm.script_versions set aside_at = $2 where script_id = any($1) and aside_at is null', [
      gone,
      at,
    ])
    return `rsm.script_versions, aside_at ${at}`
  }

  async function removeOld(days: number, age: Age): Promise<void> {
    if (days === 0) return
    const times = await ask<{ at: string }>(
      'select distinct aside_at as at from rsm.script_versions where aside_at is not null',
    )
    const old = times.map(({ at }) => at).filter((at) => age(Date.parse(at)) >= days * day)
    if (old.length > 0)
      await ask('delete from rsm.script_versions where aside_at = any($1::timestamptz[])', [old])
  }

  return {
    async save(script) {
      await ask(
        `with kept as (
          insert into rsm.script_versions(script_id, version, rec) values ($1, $2, $3)
          on conflict (script_id, version) do update set rec = excluded.rec, aside_at = null)
        delete from rsm.script_versions where script_id = $1 and version <= $2 - $4::int`,
        [script.id, script.version, JSON.stringify(script), most],
      )
    },
    async list(id) {
      const rows = await ask<{ version: number }>(
        `select version from rsm.script_versions where script_id = $1 and aside_at is null order by version desc limit $2`,
        [id, most],
      )
      return rows.map(({ version }) => version).toReversed()
    },
    async read(id, version) {
      if (!Number.isSafeInteger(version)) return null
      const [row] = await ask<{ rec: ScriptRecord }>(
        'select rec from rsm.script_versions where script_id = $1 and version = $2::bigint and aside_at is null',
        [id, version],
      )
      return row?.rec ?? null
    },
    async forget(id) {
      await ask('delete from rsm.script_versions where script_id = $1 and aside_at is null', [id])
    },
    async sweep(exists, days, age, now) {
      const moved = await moveAside(exists, now)
      await removeOld(days, age)
      return moved
    },
  }
}

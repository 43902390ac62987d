import type { Found, Query, Reads, Where } from '../../ports/store.ts'
import {
  type AnyRecord,
  asked,
  type Id,
  type IndexOf,
  indexList,
  type Noun,
  type Records,
} from '../../records/records.ts'
import type { Ask } from '../connection/database.ts'
import { blocksWith, idOf, parameterOf, plainJson, plainText, type Table, tableOf } from './tables.ts'

interface Row {
  rec: AnyRecord
}

/**
 * Reads records through `ask`: committed ones, or those that its transaction sees. `isLocking`: locks records
 * read by id until the end of the transaction.
 */
export function createReads(ask: Ask, isLocking = false): Reads {
  async function getMany<N extends Noun>(
    noun: N,
    ids: readonly Id[],
  ): Promise<(Readonly<Records[N]> | undefined)[]> {
    const table = tableOf(noun)
    const known = knownIds(table, ids)
    if (known.length === 0) return ids.map(() => undefined)
    const statement = {
      name: `store ${isLocking ? 'lock' : 'get'} ${noun}`,
      text: `select rec from rsm.${noun} where id = any($1::${table.idType}[])${isLocking ? ' order by id for update' : ''}`,
    }
    const found = new Map((await ask<Row>(statement, [known])).map(({ rec }) => [rec.id, rec]))
    return ids.map((id) => found.get(id) as Records[N] | undefined)
  }

  return {
    getMany,
    get: async (noun, id) => (await getMany(noun, [id]))[0],
    async find<N extends Noun>(noun: N, index: IndexOf<N>, key: string | number) {
      const sought = keyOf(noun, index, key)
      if (!sought) return []
      const statement = {
        name: `store find ${noun} ${index}`,
        text: `select rec from rsm.${noun} where "${index}" = $1::${sought.type} order by id`,
      }
      return (await ask<Row>(statement, [sought.value])).map(({ rec }) => rec as Records[N])
    },
    async query<N extends Noun>(noun: N, query?: Query<N>): Promise<Found<N>> {
      const { text, values } = statementOf(noun, (query ?? {}) as AnyQuery)
      const rows = await ask<{ total: number | null; rec: Records[N] | null }>(text, values)
      const items = rows.flatMap(({ rec }) => rec ?? [])
      return { items, total: rows[0]?.total ?? items.length }
    },
  }
}

/** Parameter for a key of an index; null if no record can have it. */
function keyOf(noun: Noun, index: string, key: string | number): { type: string; value: unknown } | null {
  const column = tableOf(noun).columns.find(({ name }) => name === index)
  if (!column || !indexList[noun].some(({ name }) => name === index))
    throw new Error(`${noun} have no index ${index}`)
  const value = parameterOf(column.type, key)
  return value === undefined ? null : { type: column.type, value }
}

/** Drops ids that no record of the table can have. */
const knownIds = (table: Table, ids: readonly Id[]): unknown[] =>
  ids.map((id) => idOf(table, id)).filter((id) => id !== undefined)

/** A query without the type of its noun. */
export type AnyQuery = Omit<Query<Noun>, 'where' | 'order'> & { where?: Where<never>; order?: string }
type Member = string | number | readonly [string, string]

interface Sql {
  readonly text: string
  readonly values: readonly unknown[]
}

const nothing = 'false'

/** Selects the records of a query and the number of all matches; one row without a record if the window is empty. */
export function statementOf(noun: Noun, query: AnyQuery): Sql {
  const table = tableOf(noun)
  const { where = {}, order = 'asc', offset = 0, limit, limitText } = query
  const values: unknown[] = []
  const from = `from rsm.${noun} where ${conditionsOf(table, where, values)}`
  const { columns, way } = orderOf(table, order)
  const by = (prefix: string) => `order by ${columns.map((column) => `${prefix}${column}${way}`).join(', ')}`
  if (limit === undefined && offset === 0)
    return { text: `select null::bigint as total, rec ${from} ${by('')}`, values }
  const window = `limit ${limit === undefined ? 'all' : `$${values.push(limit)}`} offset $${values.push(offset)}`
  const place = (over: string) => (limitText === undefined ? '' : `, row_number() over (${over}) as place`)
  const text = isSearch(where as Where<Noun>)
    ? `with found as materialized (select ${columns.join(', ')} ${from}),
        page as (select * from found ${by('')} ${window})
      select (select count(*) from found) as total, rec${place(by('page.'))}
      from (values (1)) one(row) left join (page join rsm.${noun} using (id)) on true ${by('page.')}`
    : `select (select count(*) ${from}) as total, rec${place('')}
      from (values (1)) one(row) left join lateral (select rec ${from} ${by('')} ${window}) page on true`
  return { text: limitText === undefined ? text : cut(text, values.push(limitText)), values }
}

/** SQL of a `where`; appends its parameters to `values`. */
function conditionsOf(table: Table, where: Where<never>, values: unknown[]): string {
  const { ids, equals = {}, contains, before = {}, has = {} } = where as Where<Noun>
  const parameter = (value: unknown) => `$${values.push(value)}`
  const columnOf = (name: string) => {
    const column = table.columns.find((one) => one.name === name)
    if (!column) throw new Error(`queries of ${table.noun} ask for no ${name}`)
    return { quoted: `"${name}"`, type: column.type }
  }
  const conditions: string[] = []
  if (ids) conditions.push(`id = any(${parameter(knownIds(table, ids))}::${table.idType}[])`)
  for (const [name, value] of Object.entries(equals)) {
    if (value === undefined) continue
    const { quoted, type } = columnOf(name)
    const same = value === null ? null : parameterOf(type, value)
    conditions.push(
      same === null
        ? `${quoted} is null`
        : same === undefined
          ? nothing
          : `${quoted} = ${parameter(same)}::${type}`,
    )
  }
  for (const [name, members] of Object.entries(has) as [string, readonly Member[] | undefined][]) {
    columnOf(name)
    for (const member of members ?? []) conditions.push(hasMember(table.noun, name, member, parameter))
  }
  for (const [name, time] of Object.entries(before) as [string, string | undefined][])
    if (time !== undefined) conditions.push(`${columnOf(name).quoted} < ${parameter(plainText(time))}`)
  const wanted = contains?.text?.toLowerCase()
  if (contains && wanted) {
    const text = parameter(plainText(wanted))
    const matches = contains.fields.map((name) => `strpos(${columnOf(name).quoted}, ${text}) > 0`)
    conditions.push(`(${matches.join(' or ') || nothing})`)
  }
  return conditions.length === 0 ? 'true' : conditions.join(' and ')
}

function hasMember(noun: Noun, name: string, member: Member, parameter: (value: unknown) => string): string {
  const how = (asked[noun] as Readonly<Record<string, string>>)[name]
  const json = (value: unknown) => `"${name}" @> ${parameter(JSON.stringify(plainJson(value)))}::jsonb`
  if (how === 'set') return `"${name}" && ${parameter(blocksWith(Number(member)))}::bigint[]`
  if (how === 'list') return typeof member === 'object' ? nothing : json([member])
  return typeof member === 'object' ? json({ [member[0]]: member[1] }) : nothing
}

function orderOf(table: Table, order: string): { columns: string[]; way: string } {
  const column = `${order}Order`
  const isOwn = table.columns.some(({ name }) => name === column)
  return { columns: isOwn ? [`"${column}"`, 'id'] : ['id'], way: order === 'desc' ? ' desc' : '' }
}

/** Whether a condition has no index in the list's order: then all matches are found first, without records. */
const isSearch = ({ contains, has = {} }: Where<Noun>): boolean =>
  Boolean(contains?.text) || Object.values<unknown>(has).some((members) => members !== undefined)

/** Cuts rows to as many characters as the parameter allows, but keeps the first one. */
function cut(rows: string, parameter: number): string {
  return `select total, rec from (
      select *, sum(length(rec::text)) over (order by place) as characters from (${rows}) numbered) measured
    where place = 1 or characters <= $${parameter} order by place`
}

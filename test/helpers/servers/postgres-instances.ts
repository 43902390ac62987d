import { execFileSync, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../../../src/disk/log.ts'
import { oldestVersion } from '../../../src/server/storage/postgres/connection/client.ts'
import { createDatabase } from '../../../src/server/storage/postgres/connection/database.ts'
import { migrate } from '../../../src/server/storage/postgres/schema/migrations.ts'
import { patientAddress } from './patient-address.ts'
import { onSteadyPort } from './steady-port.ts'

/** Finds the newest installed version: Debian keeps the programs of each version apart. */
function findPrograms(): string | null {
  const given = process.env.RSM_TEST_PG
  if (given !== undefined && given !== 'required') return given
  const versions = '/usr/lib/postgresql'
  const found = existsSync(versions)
    ? readdirSync(versions)
        .filter((version) => Number(version) >= oldestVersion)
        .toSorted((a, b) => Number(b) - Number(a))
        .map((version) => join(versions, version, 'bin'))
    : []
  return found.find((directory) => existsSync(join(directory, 'initdb'))) ?? null
}

/** Directory of PostgreSQL's programs; null if it is not installed. */
export const programs: string | null = findPrograms()
/** Why tests are skipped then, or fail if RSM_TEST_PG is `required`. */
export const missing = `PostgreSQL ${oldestVersion} or newer is missing: apt install postgresql`
if (programs === null && process.env.RSM_TEST_PG === 'required') throw new Error(missing)

/** PostgreSQL refuses to run as root. */
const asUser = process.getuid?.() === 0 ? ['--reuid=postgres', '--regid=postgres', '--init-groups'] : null

function command(program: string, args: readonly string[]): [string, string[]] {
  const path = join(programs ?? '', program)
  return asUser ? ['setpriv', [...asUser, path, ...args]] : [path, [...args]]
}

function run(program: string, args: readonly string[]): string {
  const [file, all] = command(program, args)
  const { status, stderr, stdout } = spawnSync(file, all, { encoding: 'utf8', cwd: '/' })
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr}${stdout}`)
  return stdout
}

/** An empty data directory, made once for all test files on this machine. */
function blank(): string {
  const version = (programs ?? '').replaceAll(/\W+/g, '-')
  const kept = join(tmpdir(), `rsm-test-postgres${version}-${process.getuid?.() ?? 0}`)
  if (existsSync(kept)) return kept
  const made = mkdtempSync(join(tmpdir(), 'rsm-initdb-'))
  try {
    own(made)
    run('initdb', [
      '-D',
      join(made, 'data'),
      '-U',
      'rsm',
      '-A',
      'trust',
      '--no-sync',
      '-E',
      'UTF8',
      '--locale=C.UTF-8',
    ])
    renameSync(made, kept)
  } catch (error) {
    rmSync(made, { recursive: true, force: true })
    // Another test file was faster.
    if (!existsSync(kept)) throw error
  }
  return kept
}

function own(directory: string): void {
  if (asUser) execFileSync('chown', ['-R', 'postgres:postgres', directory])
}

/** A PostgreSQL that can be stopped, and started again on the same data and port. */
interface Instance {
  readonly port: number
  readonly dataDirectory: string
  start(): void
  /** `immediate` is a crash. */
  stop(mode: 'fast' | 'immediate'): void
}

export interface Postgres extends Instance {
  /** URL of a new database, empty or with the schema. */
  database(how?: { migrated: boolean }): Promise<string>
}

export interface Standby extends Instance {
  /** Makes it the primary; returns when it accepts writes. */
  promote(): void
}

/** Settings that make it small and fast; its data need not survive a power loss. */
const settings = {
  listen_addresses: '127.0.0.1',
  fsync: 'off',
  shared_buffers: '32MB',
  max_connections: '400',
  unix_socket_directories: '',
  max_wal_size: '256MB',
}

type Teardown = (end: () => void) => void
type Settings = Readonly<Record<string, string>>

/** A file system in memory if it has enough room: a new database is hundreds of files, which costs 20 times as much elsewhere. */
function memory(): string | null {
  const directory = '/dev/shm'
  if (!existsSync(directory)) return null
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize > 4 * 2 ** 30 ? directory : null
}

/** Starts a new instance on the data that `fill` writes. */
async function startInstance(
  teardown: Teardown,
  more: Settings,
  fill: (data: string) => void,
): Promise<Instance> {
  const directory = mkdtempSync(join(memory() ?? tmpdir(), 'rsm-postgres-'))
  const data = join(directory, 'data')
  const control = (...args: string[]) => run('pg_ctl', ['-D', data, '-s', '-w', ...args])
  const stop = (mode: string) => control('-m', mode, 'stop')
  teardown(() => {
    try {
      stop('immediate')
    } catch {
      // The test has stopped it, or it never started.
    }
    rmSync(directory, { recursive: true, force: true })
  })
  own(directory)
  fill(data)
  own(directory)
  execFileSync('chmod', ['700', data])
  return onSteadyPort(async (port) => {
    const options = Object.entries({ ...settings, ...more, port: String(port) })
      .map(([name, value]) => `-c ${name}='${value}'`)
      .join(' ')
    const start = () => control('-l', join(directory, 'log'), '-o', options, 'start')
    start()
    return { port, dataDirectory: data, start, stop }
  })
}

/** A PostgreSQL of this test file, which it may stop or configure; it ends with `teardown`. `more`: further settings. */
export function startPostgres(teardown: Teardown, more: Settings = {}): Promise<Postgres> {
  return orSkipped(async () => {
    const instance = await startInstance(teardown, more, (data) =>
      cpSync(join(blank(), 'data'), data, { recursive: true, verbatimSymlinks: true }),
    )
    return { ...instance, database: databasesOf(instance, 'rsm') }
  })
}

/** PostgreSQL for tests that neither stop nor configure it. */
export type SharedPostgres = Pick<Postgres, 'port' | 'database'>

/** Port of the PostgreSQL that .ci/test.js starts for the whole run. */
const runsPort = Number(process.env['RSM_TEST_PG_PORT'])
/** Prefix for the names of this file's databases there. */
const prefix = `rsm_${randomUUID().slice(0, 8)}`
let shared: Promise<SharedPostgres> | null = null

/** Databases on the PostgreSQL of the whole run, or on one of this file if it runs alone. */
export function sharedPostgres(): Promise<SharedPostgres> {
  shared ??= runsPort
    ? orSkipped(async () => ({ port: runsPort, database: databasesOf({ port: runsPort }, prefix) }))
    : startPostgres(atExit)
  return shared
}

/** Drops the databases of this file, except those in use. */
export async function dropDatabases(): Promise<void> {
  if (!runsPort || !shared) return
  const postgres = opened(urlOf([{ port: runsPort }], 'postgres'))
  const unused = await postgres.ask<{ datname: string }>(
    'api',
    `select datname from pg_database where starts_with(datname, $1)
      and not exists (select from pg_stat_activity where datid = pg_database.oid)`,
    [prefix],
  )
  for (const { datname } of unused) await postgres.ask('api', `drop database ${datname}`)
  await postgres.close()
}

/** A test file asks for PostgreSQL before its tests are skipped, so the rejection is handled here. */
function orSkipped<T>(start: () => Promise<T>): Promise<T> {
  const started = programs === null ? Promise.reject(new Error(missing)) : start()
  if (programs === null) started.catch(() => undefined)
  return started
}

/** Creates databases whose names begin with `prefix`. */
function databasesOf(instance: Pick<Instance, 'port'>, prefix: string): Postgres['database'] {
  let count = 0
  let template: Promise<string> | null = null
  /** Creation is sequential: PostgreSQL copies a template once at a time, and waiting statements would run into their timeout. */
  let creating: Promise<void> = Promise.resolve()
  const url = (database: string) => urlOf([instance], database)

  return async ({ migrated } = { migrated: true }) => {
    const name = `${prefix}_${++count}`
    if (migrated) template ??= makeTemplate(instance)
    const from = migrated ? ` template ${await template}` : ''
    creating = creating
      .catch(() => undefined)
      .then(() => asked(url('postgres'), `create database ${name}${from}`))
    await creating
    return url(name)
  }
}

/** A database with the schema, made by the first of the files that share an instance. */
async function makeTemplate(instance: Pick<Instance, 'port'>): Promise<string> {
  const [template, unfinished] = ['rsm_template', 'rsm_template_unfinished']
  const postgres = opened(urlOf([instance], 'postgres'))
  const session = await postgres.connect(true)
  await session.query('select pg_advisory_lock(1)')
  const found = await session.query('select from pg_database where datname = $1', [template])
  if (found.rowCount === 0) {
    await session.query(`drop database if exists ${unfinished}`)
    await session.query(`create database ${unfinished}`)
    const database = opened(urlOf([instance], unfinished))
    await migrate(database)
    await database.close()
    await session.query(`alter database ${unfinished} rename to ${template}`)
  }
  await session.end()
  await postgres.close()
  return template
}

/** The store URL of a server that finds its primary among these. */
export const urlOf = (instances: readonly Pick<Instance, 'port'>[], database: string): string =>
  `postgres://rsm@${instances.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${database}`

const opened = (url: string) => createDatabase(patientAddress(url), 'test', createLog('ERROR'))

async function asked(url: string, text: string): Promise<void> {
  const client = opened(url)
  await client.ask('api', text)
  await client.close()
}

/**
 * Starts a standby that follows `primary`. If it is synchronous, the primary acknowledges no commit that the standby lacks,
 * from the end of this call on.
 */
export async function startStandby(
  teardown: Teardown,
  primary: Postgres,
  { synchronous }: { synchronous: boolean },
): Promise<Standby> {
  const from = `host=127.0.0.1 port=${primary.port} user=rsm`
  const instance = await startInstance(
    teardown,
    { primary_conninfo: `${from} application_name=standby` },
    (data) => run('pg_basebackup', ['-D', data, '-R', '-X', 'stream', '-c', 'fast', '-d', from]),
  )
  if (synchronous) {
    const postgres = urlOf([primary], 'postgres')
    await asked(postgres, "alter system set synchronous_standby_names = 'standby'")
    await asked(postgres, 'select pg_reload_conf()')
  }
  return {
    ...instance,
    promote: () => run('pg_ctl', ['-D', instance.dataDirectory, '-s', '-w', 'promote']),
  }
}

/** A database as statements that fill another one, for any owner. */
export const dumped = (url: string): string =>
  run('pg_dump', ['--inserts', '--no-owner', '--no-comments', '-d', url])
    // Commands of psql alone, written by newer versions.
    .replaceAll(/^\\\S.*\n/gm, '')

/** Runs at the end of the process: for the single PostgreSQL of a test file. */
export function atExit(end: () => void): void {
  process.once('exit', end)
}

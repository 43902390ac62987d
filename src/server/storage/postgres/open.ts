import { join } from 'node:path'
import type { AuditDetail } from '../../../core/audit.ts'
import { RsmError } from '../../../core/errors.ts'
import { AgreedClock, sinceBoot } from '../../../disk/agreed-clock.ts'
import { type Clock, isoTime } from '../../../disk/clock.ts'
import type { Log } from '../../../disk/log.ts'
import { serverVersion } from '../../../disk/own-release.ts'
import { recordForSystem, reportDoubt } from '../audit-entry.ts'
import { makeBackup } from '../backup/backup.ts'
import { ascendFrom } from '../ids.ts'
import { loadKeys } from '../keys.ts'
import { noteElsewhere, refuseOther, refuseStoreInside } from '../moved-store.ts'
import type { AuditLog } from '../ports/audit-log.ts'
import type { Data, DataOptions, OpenData } from '../ports/data.ts'
import type { StoreMaintenance } from '../ports/maintenance.ts'
import { createNotedHead, openAuditLog } from './audit-log.ts'
import { createStoreClock } from './clock.ts'
import { createCluster, createServerLocks } from './cluster.ts'
import { displayAddress } from './connection/address.ts'
import { createDatabase, type Database } from './connection/database.ts'
import { refusePooler } from './connection/session.ts'
import { openPostgresExecutions } from './executions/executions.ts'
import { createFiles } from './files.ts'
import { openChannel } from './hints/channel.ts'
import { createHints } from './hints/hints.ts'
import { createHistory } from './history.ts'
import { openDaysAhead } from './outputs/days.ts'
import { createPostgresOutputs } from './outputs/outputs.ts'
import { openOwnership } from './ownership/ownership.ts'
import type { Place } from './place.ts'
import { openPresence } from './presence/presence.ts'
import { createRecordings } from './recordings.ts'
import { createPostgresResults } from './results.ts'
import { beginRun } from './runs.ts'
import { migrate } from './schema/migrations.ts'
import { createScriptVersions } from './script-versions.ts'
import { createShortLived } from './short-lived.ts'
import { openPostgresStore, withReplica } from './store/store.ts'
import { refuseClosed } from './streams/closed.ts'
import { openPostgresSnapshot } from './streams/store.ts'

/** Opened parts, closed in reverse order. */
class Opened {
  readonly #ends: (() => Promise<void> | void)[] = []
  readonly #log: Log

  constructor(log: Log) {
    this.#log = log
  }

  add<T extends { close(): Promise<void> | void }>(part: T): T {
    this.#ends.unshift(() => part.close())
    return part
  }

  /** Continues after errors, because PostgreSQL may be unreachable. */
  async close(): Promise<void> {
    for (const end of this.#ends.splice(0))
      try {
        await end()
      } catch (error) {
        this.#log.warn({ err: error }, 'a part of the store did not close cleanly')
      }
  }
}

interface Opening extends Omit<DataOptions, 'onFatal'> {
  readonly path: string
  readonly database: Database
  readonly opened: Opened
  readonly onFatal: (error: unknown) => void
}

/** Opens the shared store in PostgreSQL; `path` holds the local files of this server. Errors: `unavailable`, `conflict`. */
export function openPostgres({ address, serverName }: Place): OpenData {
  return async (path, options) => {
    await refuseStoreInside(path)
    const opened = new Opened(options.log)
    const database = opened.add(createDatabase(address, serverName, options.log))
    try {
      await refusePooler(database)
      await migrate(database)
      await refuseClosed((...asked) => database.ask('api', ...asked), address)
      return await openAll({ ...options, path, database, opened, onFatal: (error) => options.onFatal(error) })
    } catch (error) {
      await opened.close()
      throw error
    }
  }
}

/** Opens the store, and the hints between its servers. */
async function openGround({ path, database, opened, clock: system, log }: Opening) {
  const clock = await createStoreClock(database, system)
  const channel = opened.add(await openChannel({ database, clock, log }))
  const hints = opened.add(createHints(channel, log))
  const store = opened.add(await withReplica(await openPostgresStore({ database, log })))
  hints.refreshFirst(() => store.refresh())
  await refuseOther(path, { store: displayAddress(database.address), storeId: store.storeId })
  for (const noun of ['tasks', 'terminals'] as const) {
    const [newest] = (await store.query(noun, { limit: 1, order: 'desc' })).items
    if (newest) ascendFrom(newest.id)
  }
  return { clock, channel, hints, store }
}

type Ground = Awaited<ReturnType<typeof openGround>>

/** Records the loss of data in the audit log, then ends this server. */
async function endRewound(
  { log, onFatal }: Opening,
  audit: AuditLog,
  fault: unknown,
  lost: AuditDetail,
): Promise<void> {
  try {
    await recordForSystem(audit, 'store.rewound', lost, 'FAILED')
  } catch (err) {
    log.warn({ err }, 'could not record in the audit log that the store lost data')
  }
  onFatal(fault)
}

/** Opens the start, the keys and the membership of this server. */
async function openStanding(opening: Opening, { clock, hints, store }: Ground, audit: AuditLog) {
  const { database, opened, keysDirectory, newKeys, log } = opening
  const serverRuns = opened.add(
    await beginRun({
      database,
      store,
      clock,
      log,
      onFatal: (fault, lost) => void endRewound(opening, audit, fault, lost),
    }),
  )
  const version = serverVersion()
  const ownership = opened.add(await openOwnership({ database, hints, clock, log, version }))
  const living = (await ownership.servers()).filter(({ isLiving }) => isLiving).map(({ name }) => name)
  if (newKeys && living.length > 0)
    throw new RsmError(
      'conflict',
      '--new-keys replaces the keys of all servers of the store, and others are running',
      {
        hint: 'stop them first, or copy their keys instead',
      },
    )
  const others = living.filter((name) => name !== database.name)
  const locks = createServerLocks(database)
  const at = isoTime(clock.now())
  const loaded = await locks.exclusive(() => loadKeys(keysDirectory, { store, newKeys, at, others }))
  return { serverRuns, ownership, locks, keys: loaded.keys, replacedKeys: loaded.replaced }
}

async function openAll(opening: Opening): Promise<Data> {
  const { path, database, opened, heartbeatInterval, warnAfter, log } = opening
  const ground = await openGround(opening)
  const { clock, channel, hints, store } = ground
  const audit = opened.add(await openAuditLog({ database, storeId: store.storeId, clock, log }))
  const agreed = opened.add(await openAgreed(path, { audit, clock, log }))
  const { locks, ...standing } = await openStanding(opening, ground, audit)
  const { ownership } = standing
  const presence = opened.add(
    await openPresence({
      database,
      channel,
      hints,
      neighbours: ownership.neighbours,
      heartbeatInterval,
      warnAfter,
      version: serverVersion(),
      clock,
      log,
    }),
  )
  opened.add(await openDaysAhead({ database, clock, log }))
  const outputs = opened.add(createPostgresOutputs(database, hints))
  const address = displayAddress(database.address)
  const cluster = opened.add(createCluster({ database, channel, ownership, locks, hints, clock, log }))
  return {
    ...cluster,
    clock,
    store,
    ...standing,
    hints,
    shortLived: createShortLived(database),
    audit,
    notedHead: createNotedHead(database, audit),
    executions: opened.add(await openPostgresExecutions({ database, store, outputs, hints, clock, log })),
    presence,
    history: opened.add(createHistory({ database, clock, log })),
    outputs,
    results: createPostgresResults(database, outputs),
    versions: createScriptVersions(database),
    recordings: createRecordings(database),
    files: createFiles(database),
    agreed,
    maintenance: maintenanceOf(opening, clock),
    waitingWrites: () => store.queueLength,
    markUsed: () => noteElsewhere(path, { store: address, storeId: store.storeId }),
    close: () => opened.close(),
  }
}

/** Opens the history of the store's clock, by which housekeeping measures ages. */
function openAgreed(
  path: string,
  { audit, clock, log }: Pick<Data, 'audit' | 'clock'> & Pick<DataOptions, 'log'>,
): Promise<AgreedClock> {
  return AgreedClock.open({
    path: join(path, 'clock.json'),
    clocks: { now: () => clock.now(), sinceBoot: clock.sinceBoot?.bind(clock) ?? sinceBoot },
    async newest() {
      const [entry] = (await audit.list({ size: 1 })).content
      return entry === undefined ? null : Date.parse(entry.at)
    },
    changed: reportDoubt({ audit, log }),
    log: (message, fields) => log.warn(fields, message),
  })
}

/** Backups of one snapshot. Compacting is left to PostgreSQL. */
function maintenanceOf({ path, database, keysDirectory }: Opening, clock: Clock): StoreMaintenance {
  const hint = 'PostgreSQL compacts itself; see its autovacuum'
  const message = `the store of this server is ${displayAddress(database.address)}: there is nothing to compact`
  return {
    backup: (options) =>
      makeBackup(
        {
          store: 'postgresql',
          directory: path,
          keysDirectory,
          version: serverVersion(),
          createdAt: isoTime(clock.now()),
          openSnapshot: (damaged) => openPostgresSnapshot(database, damaged),
        },
        options,
      ),
    compact: () => Promise.reject(new RsmError('conflict', message, { hint })),
  }
}

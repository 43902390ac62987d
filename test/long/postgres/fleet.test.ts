import { parseSelector } from '../../../src/core/selector/parse.ts'
import { createLog } from '../../../src/disk/log.ts'
import { createFleet } from '../../../src/server/hosts/fleet.ts'
import type { Views } from '../../../src/server/storage/ports/presence.ts'
import type { Store } from '../../../src/server/storage/ports/store.ts'
import { openStore } from '../../helpers/servers/open-store.ts'
import { sharedPostgres, startPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { cluster, host } from '../../helpers/servers/store-records.ts'

const postgres = sharedPostgres()

/** The views of hosts that have never been heard. */
const silent: Views = {
  views: async () => [],
  standings: async (hostIds) => hostIds.map(() => ({ status: 'OFFLINE', reachable: false, noLink: false })),
  isReturning: false,
  revision: 0,
}

const fleetOf = (store: Store) => createFleet(store, silent, createLog('ERROR'))

test('changes that another server has acknowledged are used at once when hosts are selected or shown', async (t) => {
  const url = await (await postgres).database()
  const [{ store: a }, { store: b }] = [await openStore(t, url, 'a'), await openStore(t, url, 'b')]
  const fleet = fleetOf(b)
  t.deepEqual((await fleet.directory()).hosts, [])
  for (let id = 1; id <= 10; id++) {
    await a.transact((tx) => {
      tx.put('hosts', host(id, `web${id}`))
      tx.put('clusters', cluster(id, `c${id}`, { selector: `web[1-${id}]` }))
    })
    t.is((await fleet.select(parseSelector(`@c${id}`), 'selector')).length, id)
    const [shown] = await fleet.hostsToApi([host(id, `web${id}`)])
    t.deepEqual(shown?.clusterIds, [id])
    t.is((await fleet.targets(cluster(99, 'all', { selector: '*' }), 'clusterId')).length, id)
  }
})

test('while PostgreSQL is down hosts are selected from cached records', async (t) => {
  const server = await startPostgres((end) => t.teardown(end))
  const { store } = await openStore(t, await server.database())
  const fleet = fleetOf(store)
  await store.transact((tx) => tx.put('hosts', host(1, 'web1')))
  t.deepEqual(await fleet.select(parseSelector('web1'), 'selector'), [1])
  server.stop('immediate')
  t.deepEqual(await fleet.select(parseSelector('web1'), 'selector'), [1])
  await t.throwsAsync(store.refresh(), { code: 'unavailable' })
})

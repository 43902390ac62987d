import type { ExecutionContext, TestFn } from 'ava'
import { RsmError } from '../../src/core/errors.ts'
import type { Member, Relay, TerminalSite } from '../../src/server/storage/ports/cluster.ts'
import { terminal } from '../helpers/servers/store-records.ts'
import { notedClient } from '../helpers/terminals/noted-client.ts'
import { until } from '../helpers/until.ts'

/** Servers of one store, and the relay of their terminal frames. */
export interface OpenedRelay {
  relay: Relay
  join: (name: string) => Promise<Member>
}

/** A site that has some sessions and notes its calls. */
function noting(name: string, ...ids: string[]) {
  const told: string[] = []
  const note = (what: string) => void told.push(what)
  const site: TerminalSite = {
    open: async ({ record }) => note(`open ${record.id}`),
    has: async (id) => ids.includes(id),
    isAttachable: async (id) => ids.includes(id),
    async expect(id) {
      if (!ids.includes(id)) throw new RsmError('gone', `Terminal session ${id} has ended`)
    },
    attach(id, client) {
      note(`attach ${id} for ${client.caller.username}`)
      client.output(0, Buffer.from('"first"'), () => note('written'))
      client.send('TERMINAL_RESIZE', { sessionId: id, cols: 90, rows: 30 })
      return {
        input: (data, _, place) => note(`input ${data}${place ? ` ${place.by} ${place.position}` : ''}`),
        resize: (cols, rows) => note(`resize ${cols}x${rows}`),
        acknowledge: (sequence) => note(`shown ${sequence}`),
        leave: () => client.close(1000, 'its user left'),
        gone: () => note('gone'),
        parted: () => note('parted'),
      }
    },
    end: async (id, reason) => note(`end ${id}: ${reason}`),
    live: async (record) => ({ record, watchers: [name], recordingBytes: 7 }),
    handOver: async (id, hostId) => (ids.includes(id) ? terminal(id, { hostId }) : null),
  }
  return { site, told }
}

/** Suite for every implementation of Relay. */
export function relayContract(test: TestFn, open: (t: ExecutionContext) => Promise<OpenedRelay>): void {
  test('a server reaches the sites of other servers, and finds the one that has a session', async (t) => {
    const { relay, join } = await open(t)
    const [a, b] = [await join('a'), await join('b')]
    relay.serve(a, noting('a', 's1').site)
    relay.serve(b, noting('b', 's2').site)
    const shown = terminal('s2')
    const { watchers, record } = (await (await relay.at(b))?.live(shown)) ?? {}
    t.deepEqual([watchers, record], [['b'], shown])
    t.deepEqual((await (await relay.having('s1'))?.live(shown))?.watchers, ['a'])
    t.is(await relay.having('s3'), null)
    t.is((await (await relay.having('s2'))?.handOver('s2', 4))?.hostId, 4)
  })

  test('calls to a client and to its attachment arrive, each in order', async (t) => {
    const { relay, join } = await open(t)
    const { site, told } = noting('b', 's1')
    relay.serve(await join('b'), site)
    const { client, heard } = notedClient('carol')
    const there = await relay.having('s1')
    const attachment = there?.attach('s1', client, { after: null, watch: false })
    attachment?.input('ls\r', 'f1')
    attachment?.input('id', 'f2', { by: 'a', position: 3 })
    attachment?.resize(100, 40)
    attachment?.acknowledge(0)
    attachment?.leave()
    attachment?.gone()
    attachment?.parted()
    const expected = [
      'attach s1 for carol',
      'input ls\r',
      'input id a 3',
      'resize 100x40',
      'shown 0',
      'gone',
      'parted',
    ]
    await until('all calls arrive', () => expected.every((one) => told.includes(one)))
    t.deepEqual(
      told.filter((one) => one !== 'written'),
      expected,
    )
    await until('the client gets the close', () => heard.length === 3)
    t.deepEqual(heard, ['output 0 "first"', 'TERMINAL_RESIZE', 'closed 1000 its user left'])
    t.true(told.includes('written'))
  })

  test('a refusal keeps its code', async (t) => {
    const { relay, join } = await open(t)
    const b = await join('b')
    relay.serve(b, noting('b').site)
    await t.throwsAsync(async () => (await relay.at(b))?.expect('s9', null), {
      code: 'gone',
      message: 'Terminal session s9 has ended',
    })
  })

  test('a stopped server, or a previous life of it, is no longer reached', async (t) => {
    const { relay, join } = await open(t)
    const former = await join('b')
    const stopFormer = relay.serve(former, noting('former', 's1').site)
    const present = await join('b')
    const stop = relay.serve(present, noting('present', 's2').site)
    stopFormer()
    t.is(await relay.at(former), null)
    t.is(await relay.having('s1'), null)
    t.not(await relay.at(present), null)
    stop()
    t.is(await relay.at(present), null)
    t.is(await relay.having('s2'), null)
  })
}

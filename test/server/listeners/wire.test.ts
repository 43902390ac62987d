import { deflateRawSync } from 'node:zlib'
import test from 'ava'
import { rawLink, wireFrame } from '../../helpers/agents/raw-link.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

const text = Buffer.from('{"type":"X","id":"1"}')
const bomb = deflateRawSync(Buffer.alloc(64 * 1024 * 1024, 'x'))
const faults: readonly (readonly [what: string, bytes: Buffer | Buffer[], code: number])[] = [
  ['a compressed bomb', wireFrame(0xc1, bomb), 1002],
  ['a reserved bit', wireFrame(0x91, text), 1002],
  ['a reserved opcode', wireFrame(0x83, text), 1002],
  ['text that is not UTF-8', wireFrame(0x81, Buffer.from([0x7b, 0xff, 0xfe, 0x7d])), 1007],
  ['half a surrogate pair in UTF-8', wireFrame(0x81, Buffer.from([0xed, 0xa0, 0x80])), 1007],
  ['a frame without a mask', wireFrame(0x81, text, false), 1002],
  ['a continuation without a start', wireFrame(0x80, text), 1002],
  ['a ping of more than 125 bytes', wireFrame(0x89, Buffer.alloc(126)), 1002],
  ['a fragmented ping', wireFrame(0x09, text), 1002],
  ['a close of one byte', wireFrame(0x88, Buffer.from([3])), 1002],
  [
    'fragments of more than 1 MiB together',
    Array.from({ length: 20 }, (_, at) => wireFrame(at === 0 ? 1 : 0, Buffer.alloc(65_000, 'x'))),
    1009,
  ],
  [
    'endless fragments',
    Array.from({ length: 20_000 }, (_, at) => wireFrame(at === 0 ? 1 : 0, Buffer.from('x'))),
    1008,
  ],
  [
    'endless empty fragments',
    Array.from({ length: 20_000 }, (_, at) => wireFrame(at === 0 ? 1 : 0, Buffer.alloc(0))),
    1008,
  ],
]

test('P32 a violation of the WebSocket protocol closes the link with its code, and others are still served', async (t) => {
  const server = await startTestServer(t)
  const other = await ScriptedAgent.link(server, await server.enroll('other'))
  for (const [at, [what, bytes, code]] of faults.entries()) {
    const identity = await server.enroll(`web${at}`)
    const { socket, closeCode } = await rawLink(server, identity)
    socket.write(Array.isArray(bytes) ? Buffer.concat(bytes) : bytes)
    t.is(await closeCode, code, what)
    await (await ScriptedAgent.link(server, identity)).settled()
  }
  await other.settled()
})

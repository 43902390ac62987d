import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { Mutex } from '../../../src/core/mutex.ts'
import {
  openFileRecordings,
  RecordingFile,
  verifyRecording,
} from '../../../src/server/storage/files/recordings.ts'
import { Recording, readRecorded } from '../../../src/server/terminals/recording.ts'

const header = { version: 2, width: 80, height: 24, timestamp: 0 }

async function recordingsIn(t: ExecutionContext) {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-recording-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return {
    recordings: await openFileRecordings(directory),
    pathOf: (id: string) => join(directory, `${id}.cast`),
  }
}

const nothing = () => undefined
const events = { written: nothing, failed: nothing, nearsBound: nothing, full: nothing }

test('P46 F20 a recording cut off at any byte continues after its last whole event', async (t) => {
  const { recordings, pathOf } = await recordingsIn(t)
  const path = pathOf('s1')
  const recording = await Recording.create(recordings, 's1', header, { events })
  recording.output(0.1, 0, Buffer.from(JSON.stringify('ä🙂\r\n')))
  recording.resize(0.2, 100, 30)
  recording.output(0.3, 1, Buffer.from(JSON.stringify('\u001b[31m"]\\')))
  recording.output(0.4, 5, Buffer.from(JSON.stringify('')))
  await recording.end()
  const whole = await readFile(path)
  t.is(recording.bytes, whole.length)
  const ends = [...whole.keys()].filter((at) => whole[at] === 10).map((at) => at + 1)
  const [begin = 0] = ends
  // A power loss may leave zeros where a file had grown.
  const tails = [Buffer.alloc(0), Buffer.alloc(100)]
  for (let cut = begin; cut <= whole.length; cut++)
    for (const tail of tails) {
      await writeFile(path, Buffer.concat([whole.subarray(0, cut), tail]))
      const outputs: number[] = []
      const taken = await Recording.takeUp(recordings, 's1', { events }, (sequence) => outputs.push(sequence))
      await taken.recording.end()
      const good = ends.findLast((end) => end <= cut) ?? 0
      const events_ = ends.indexOf(good)
      t.is(taken.recording.bytes, good)
      t.deepEqual(await readFile(path), whole.subarray(0, good))
      t.deepEqual(outputs, [0, 1, 5].slice(0, [0, 1, 1, 2, 2, 3][events_]))
      t.deepEqual(taken.size, events_ >= 2 ? { cols: 100, rows: 30 } : null)
    }
  const { recording: again } = await Recording.takeUp(recordings, 's1', { events }, () => undefined)
  again.output(0.2, again.written + 1, Buffer.from('"on"'))
  await again.end()
  const added = (await readFile(path, 'utf8')).trimEnd().split('\n').at(-1) ?? ''
  t.deepEqual(JSON.parse(added), [0.4, 'o', 'on'], 'time does not go back')
  await verifyRecording(path, again.bytes, again.bytes)
})

test('P46 a recording ends at its bound with a notice; later output is still acknowledged', async (t) => {
  const { recordings, pathOf } = await recordingsIn(t)
  const path = pathOf('s1')
  let heard = 0
  const counted = { ...events, written: () => heard++ }
  const recording = await Recording.create(recordings, 's1', header, { events: counted, maxBytes: 2000 })
  for (let sequence = 0; sequence < 100; sequence++)
    recording.output(sequence, sequence, Buffer.from('"0123456789"'))
  await recording.end()
  t.is(recording.written, 99)
  t.true(heard > 0)
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n')
  t.true(recording.bytes < 2200)
  const [[, code, notice] = []] = lines.slice(-1).map((line) => JSON.parse(line) as unknown[])
  t.is(code, 'o', 'players show it')
  t.regex(String(notice), /^\r\n\[rsm: the recording is full; the session/)
  t.is(lines.filter((line) => line.includes('[rsm:')).length, 1)
  const recorded = async (id: string) => {
    let outputs = 0
    const { state } = await readRecorded(recordings.content(id), () => outputs++)
    return { isFull: state.isFull, sequence: state.sequence, outputs }
  }
  const outputs = lines.length - 3
  t.deepEqual(await recorded('s1'), { isFull: true, sequence: outputs - 1, outputs })
  // Output that equals the notice does not mark a recording as full.
  const other = await Recording.create(recordings, 's2', header, { events })
  for (const [sequence, text] of ['a', String(notice), 'b'].entries())
    other.output(sequence, sequence, Buffer.from(JSON.stringify(text)))
  await other.end()
  t.deepEqual(await recorded('s2'), { isFull: false, sequence: 2, outputs: 3 })
})

test('F04 a full disk is reported once, and nothing counts as recorded', async (t) => {
  const faults: unknown[] = []
  const syncs = new Mutex()
  const create = async (_id: string, line: Uint8Array, failed: (error: unknown) => void) => {
    const sums = { file: await open('/dev/null', 'r+'), state: { end: 0, check: 0 } }
    const file = { path: '/dev/full', handle: await open('/dev/full', 'r+'), size: line.length }
    return new RecordingFile(file, sums, { syncs, failed })
  }
  const told = { ...events, failed: (error: unknown) => faults.push(error) }
  const recording = await Recording.create({ create }, 's1', header, { events: told })
  recording.output(0, 0, Buffer.from('"x"'))
  recording.output(1, 1, Buffer.from('"y"'))
  await recording.end()
  t.is(recording.written, -1)
  t.is((faults[0] as NodeJS.ErrnoException).code, 'ENOSPC')
  t.is(faults.length, 1)
})

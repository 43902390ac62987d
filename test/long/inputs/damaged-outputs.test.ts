import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { createFileOutputs } from '../../../src/server/storage/files/outputs/file-outputs.ts'
import { createFileResults } from '../../../src/server/storage/files/results.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

const entry = { stream: 'stdout', timestamp: '2026-01-01T00:00:00.000Z' } as const
/** Writes a new file: a file system may write a replaced file's text to disk at once, which is slow. */
async function place(path: string, bytes: Buffer): Promise<void> {
  await rm(path, { force: true })
  await writeFile(path, bytes)
}

const long = 'a long line\n'.repeat(400)
const outputsIn = (directory: string) =>
  createFileOutputs(directory, createLocalHints(), (error) => {
    throw error
  })

/** A log of two hosts with a long last entry; returns its text. */
async function filled(directory: string) {
  const outputs = outputsIn(directory)
  const pieces = [
    [1, 'first äöü\n'],
    [2, 'other host\n'],
    [1, 'second\n'],
  ] as const
  for (const [sequence, [hostId, data]] of pieces.entries())
    await outputs.append('T', { ...entry, hostId, sequence, data })
  await outputs.append('T', {
    ...entry,
    hostId: 2,
    sequence: 3,
    data: long,
    json: Buffer.from(JSON.stringify(long)),
  })
  await outputs.close()
}

/** Everything stored, as a reader gets it: text by host, and the damage that reads report. */
async function read(directory: string) {
  const outputs = outputsIn(directory)
  const text = new Map<number, string>()
  const told: string[] = []
  try {
    for (let after = 0; ; ) {
      const answer = await outputs
        .read('T', { after, limit: 100 })
        .catch((error: Error & { hint?: string }) => {
          told.push(error.message)
          return { entries: [], next: Number(/after=(\d+)$/.exec(error.hint ?? '')?.[1] ?? Number.NaN) }
        })
      if (Number.isNaN(answer.next)) break
      for (const { hostId, data } of answer.entries) text.set(hostId, (text.get(hostId) ?? '') + data)
      if (answer.next === after) break
      after = answer.next
    }
    // Followers get the same, with a message in place of a missing piece.
    const { lines } = await outputs.readLines('T', { after: 0, limit: 100 }).catch(() => ({ lines: [] }))
    for (const { json, damage } of lines) {
      const { data, stream, ...rest } = JSON.parse(json.toString())
      if (damage !== undefined && (stream !== 'stderr' || data !== `rsm: ${damage}\n`))
        told.push('an unexpected message')
      if (damage === undefined && Object.keys(rest).join() !== 'hostId,sequence,timestamp')
        told.push(`fields ${Object.keys(rest).join()}`)
    }
    return { text, told, damages: outputs.damages('T') }
  } finally {
    await outputs.close()
  }
}

for (const name of ['output.log', 'output.idx', 'both: output.log'])
  test(`A06 a flipped bit anywhere in ${name} is reported with file and position or changes no output that is read`, async (t) => {
    const directory = await temporaryDirectory(t)
    await filled(directory)
    const file = name.replace('both: ', '')
    const at = (of: string) => join(directory, 'T', of)
    const whole = { log: await readFile(at('output.log')), idx: await readFile(at('output.idx')) }
    const truth = (await read(directory)).text
    t.is(truth.get(2), `other host\n${long}`)
    const bytes = file === 'output.log' ? whole.log : whole.idx
    let told = 0
    for (let bit = 0; bit < bytes.length * 8; bit += bit < 4000 ? 11 : 397) {
      const flipped = Buffer.from(bytes)
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      await place(at('output.log'), file === 'output.log' ? flipped : whole.log)
      await place(at('output.idx'), file === 'output.idx' ? flipped : whole.idx)
      // The index is not fsynced, so it may also be lost.
      if (name.startsWith('both')) await rm(at('output.idx'))
      const found = await read(directory)
      const isWhole = [...truth].every(([hostId, text]) => found.text.get(hostId) === text)
      if (isWhole && found.told.length === 0) continue
      told++
      const isTold =
        found.told.length > 0 &&
        found.told.every((sentence) => /output is damaged: .*output\.log, byte \d+: /.test(sentence))
      const isPart = [...found.text].every(([hostId, text]) =>
        text.split('\n').every((line) => truth.get(hostId)?.includes(line)),
      )
      if (!isTold || !isPart || found.damages.size === 0)
        return t.fail(`bit ${bit & 7} of byte ${bit >> 3}: ${JSON.stringify([...found.text, found.told])}`)
    }
    if (file === 'output.log') t.true(told > 160)
    else t.is(told, 0, 'the index is rebuilt')
  })

test('A06 output of 0.1.0, without checksums, is read as before', async (t) => {
  const directory = await temporaryDirectory(t)
  await mkdir(join(directory, 'T'))
  const line = (hostId: number, sequence: number, data: string) =>
    `${JSON.stringify({ hostId, stream: 'stdout', sequence, timestamp: entry.timestamp, data })}\n`
  await writeFile(join(directory, 'T', 'output.log'), line(1, 0, 'old\n') + line(1, 1, 'older\n'))
  const { text, told } = await read(directory)
  t.is(text.get(1), 'old\nolder\n')
  t.deepEqual(told, [])
})

test('A06 a flipped bit anywhere in the results of a task is reported with their file or changes nothing', async (t) => {
  const directory = await temporaryDirectory(t)
  const result = {
    hostId: 1,
    hostname: 'web1',
    status: 'SUCCESS',
    exitCode: 0,
    containment: null,
    survivors: [],
    changed: null,
  } as never
  await createFileResults(directory).write('T', { script: 'echo ä', results: [result] })
  const path = join(directory, 'T', 'task.json')
  const whole = await readFile(path)
  const truth = JSON.stringify(await createFileResults(directory).read('T'))
  let told = 0
  for (let bit = 0; bit < whole.length * 8; bit++) {
    const flipped = Buffer.from(whole)
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    await place(path, flipped)
    const found = await createFileResults(directory)
      .read('T')
      .catch((error: Error) => {
        if (error.message === `the results of the task are damaged: ${path}`) return null
        throw error
      })
    if (found === null) told++
    else if (JSON.stringify({ script: found.script, results: found.results }) !== truth)
      return t.fail(`bit ${bit & 7} of byte ${bit >> 3}`)
  }
  t.true(told > whole.length * 6)
  await writeFile(path, '{"script":"true","results":[]}')
  t.deepEqual(await createFileResults(directory).read('T'), { script: 'true', results: [] })
})

test('A06 reading damaged output returns its position, marks the result as incomplete, and later output stays readable', async (t) => {
  const server = await startTestServer(t)
  const agent = await realAgent(t, server)
  const taskId = await startTask(server, [agent.hostId], {
    script: { content: 'echo one; sleep 0.3; echo two' },
  })
  await finished(server, taskId)
  await server.stop()
  const path = join(server.dataDir, 'tasks', taskId, 'output.log')
  const log = await readFile(path)
  log.write('O', log.indexOf('one'))
  await writeFile(path, log)
  await server.restart()
  t.like((await server.data('GET', `/api/tasks/${taskId}`)).results[0], { outputComplete: true })
  const answer = await server.api('GET', `/api/tasks/${taskId}/logs`)
  t.is(answer.status, 410)
  t.true(answer.body.message.startsWith(`the output is damaged: ${path}, byte 0: `), answer.body.message)
  const [result] = (await server.data('GET', `/api/tasks/${taskId}`)).results
  t.is(result.outputComplete, false)
  t.regex(result.error, /the output is damaged: /)
  const rest = await server.data('GET', `/api/tasks/${taskId}/logs?after=${log.indexOf('\n') + 1}`)
  t.is(rest.entries[0].data, 'two\n')
  const ended = await finished(server, taskId)
  t.is(ended.results[0]?.outputComplete, false, 'a follower reaches the end')
})

test('A06 reading damaged results returns their file, and the output stays readable', async (t) => {
  const server = await startTestServer(t)
  const agent = await realAgent(t, server)
  const taskId = await startTask(server, [agent.hostId], { script: { content: 'echo kept' } })
  await finished(server, taskId)
  await server.stop()
  const path = join(server.dataDir, 'tasks', taskId, 'task.json')
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace('"exitCode":0', '"exitCode":1'))
  await server.restart()
  const answer = await server.api('GET', `/api/tasks/${taskId}`)
  t.is(answer.status, 410)
  t.is(answer.body.message, `the results of the task are damaged: ${path}`)
  t.is((await server.data('GET', `/api/tasks/${taskId}/logs`)).entries[0].data, 'kept\n')
})

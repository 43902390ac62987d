import { join } from 'node:path'
import { startBarePipe } from '../bare/pipe.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { binary } from '../fleet/server.ts'
import { startSshd } from '../fleet/sshd.ts'
import { inTurn, ratioRow, wholeProcess } from '../measure.ts'
import type { Row } from '../row.ts'
import { megabyte, writeLines } from './lines.ts'

const rounds = 5
const storedMB = 128
/** Below the default of `maxOutputBytes`. */
const shownMB = 60

async function stored(fleet: Fleet, path: string): Promise<number> {
  const start = performance.now()
  const task = await fleet.call('POST', '/api/tasks', {
    script: { content: `cat ${path}` },
    target: { selector: 'host1' },
    maxOutputBytes: 2 ** 31,
    async: false,
  })
  const [result] = task['results'] as { stdoutBytes: number; outputComplete: boolean }[]
  if (result?.stdoutBytes !== storedMB * megabyte || !result.outputComplete)
    throw new Error(`${result?.stdoutBytes} bytes of ${storedMB} MB arrived`)
  return performance.now() - start
}

/** Output rate from a host into the server's log, and from a host through the server to a terminal. */
export async function benchThroughput(fleet: Fleet, directory: string): Promise<Row[]> {
  const rows: Row[] = []
  const large = join(directory, 'large')
  await writeLines(large, storedMB)
  const bare = await startBarePipe(large, join(directory, 'bare'))
  try {
    const rate = async (took: Promise<number>) => (storedMB * 1000) / (await took)
    const measured = await inTurn(
      rounds,
      () => rate(stored(fleet, large)),
      () => rate(bare.run()),
    )
    rows.push(
      ratioRow('output, host to stored, vs a bare pipe of JSON frames', 'MB/s', measured, {
        atLeast: 0.6,
      }),
    )
  } finally {
    bare.stop()
  }
  const sshd = await startSshd()
  if (!sshd) {
    process.stderr.write('sshd is missing: output is not compared with ssh\n')
    return rows
  }
  try {
    const small = join(directory, 'small')
    await writeLines(small, shownMB)
    const env = { ...process.env, RSM_URL: fleet.url, RSM_TOKEN: fleet.token }
    const exec = [binary, 'exec', '-w', 'host1', '-N', '--', 'cat', small]
    const rate = async (took: Promise<number>) => (shownMB * 1000) / (await took)
    const measured = await inTurn(
      rounds,
      () => rate(wholeProcess(process.execPath, exec, { env })),
      () => rate(wholeProcess('ssh', [...sshd.options, 'localhost', 'cat', small])),
    )
    rows.push(ratioRow('output, host to rsm exec, vs ssh', 'MB/s', measured, { atLeast: 0.3 }))
  } finally {
    await sshd.stop()
  }
  return rows
}

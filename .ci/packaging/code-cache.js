// V8's code cache of each part, recorded while a server, an agent that joins it and a command run. The executable contains it and
// starts in less than half the time.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { root } from '../bundling/bundling.js'
import { scripts } from './parts.js'

const password = 'a password for a minute'
/** Milliseconds. */
const patience = 120_000

/** Writes PART.cache beside the script of each part, by this Node, which must be that of the executable. */
export async function makeCodeCache(node) {
  const work = mkdtempSync(join(tmpdir(), 'rsm-package-'))
  const running = []
  const signal = AbortSignal.timeout(patience)
  const warm = (part, argv, env) => {
    const cache = join(root, scripts, `${part}.cache`)
    const child = spawn(node, [join(import.meta.dirname, 'warm.cjs'), part, cache, ...argv], {
      env: { PATH: '/usr/bin:/bin', HOME: work, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    running.push(child)
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text))
    const ended = once(child, 'close', { signal }).then(([code]) => {
      if (code !== 0) throw new Error(`${part} ended with ${code}: ${said}`)
    })
    return { child, ended }
  }
  try {
    const where = (name) => ['--data-dir', join(work, name), '--log-level', 'ERROR']
    const server = warm('server', ['server', 'start', '--port', '0', '--json', ...where('server')], {
      RSM_ADMIN_PASSWORD: password,
    })
    const [line] = await Promise.race([
      once(createInterface({ input: server.child.stdout }), 'line', { signal }),
      server.ended,
    ])
    const { url } = JSON.parse(line)
    const post = async (path, body, token) => {
      const headers = {
        'content-type': 'application/json',
        ...(token && { authorization: `Bearer ${token}` }),
      }
      const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body), signal })
      return (await answer.json()).data
    }
    const { token } = await post('/api/auth/login', { username: 'admin', password })
    const enrollment = await post('/api/enrollment-tokens', {}, token)
    const agent = warm('agent', ['agent', 'run', '--url', url, '--hostname', 'warm', ...where('agent')], {
      RSM_AGENT_ENROLL_TOKEN: enrollment.token,
    })
    const env = { RSM_URL: url, RSM_TOKEN: token }
    const wait = ['bin/run.js', 'hosts', 'wait', '--new', 'warm']
    const waiting = spawn(node, wait, {
      cwd: root,
      env: { ...env, PATH: '/usr/bin:/bin', HOME: work },
      stdio: 'ignore',
    })
    await Promise.race([once(waiting, 'close', { signal }), agent.ended])
    await warm('cli', ['exec', '-w', 'warm', '--', 'true'], env).ended
    for (const { child, ended } of [agent, server]) {
      child.kill('SIGTERM')
      await ended
    }
  } finally {
    for (const child of running) if (child.exitCode === null) child.kill('SIGKILL')
    rmSync(work, { recursive: true, force: true })
  }
}

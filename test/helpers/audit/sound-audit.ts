import type { ExecutionContext } from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import type { TestServer } from '../servers/server.ts'

/** Fails unless `rsm audit verify` finds the log valid, with the head `before` in it, if given; returns its head. */
export async function soundAudit(t: ExecutionContext, server: TestServer, before?: string): Promise<string> {
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: server.token })
  const ran = await runRsm(['audit', 'verify', ...(before === undefined ? [] : ['--head', before])], env)
  const [, head = ''] = /^the audit log is sound: .*, head (\S+)\n$/.exec(ran.stdout) ?? []
  t.is(ran.exit, 0, ran.stdout + ran.stderr)
  t.not(head, '', ran.stdout)
  return head
}

import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Terminal } from '../../core/protocol/http/terminals.ts'
import { oneOfPart, partOfId, refuseMisspelt, searched } from './task-names.ts'

type Services = Pick<Client, 'terminals' | 'auth'>

async function latestTerminal({ terminals, auth }: Services): Promise<Terminal> {
  const { username } = await auth.me()
  const [newest] = (await terminals.list({ recorded: true, user: username, size: 1 })).content
  if (newest === undefined)
    throw new RsmError('not_found', `${username} has recorded no session yet`, {
      hint: 'sessions of all users: rsm recordings list',
    })
  return newest
}

/** The id of a recorded session as people name it, as those of tasks are named: `latest`, a part of it, or all. */
export async function findTerminalId(services: Services, wanted: string): Promise<string> {
  if (wanted === 'latest') return (await latestTerminal(services)).sessionId
  if (!partOfId.test(wanted)) {
    refuseMisspelt('recording', 'recordings', wanted)
    return wanted
  }
  const page = await services.terminals.list({ recorded: true, size: searched })
  const ids = page.content.map(({ sessionId }) => sessionId)
  return oneOfPart({ noun: 'recording', topic: 'recordings' }, wanted, ids, page.totalElements)
}

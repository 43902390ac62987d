import { PageOf } from '../../core/protocol/http/common.ts'
import {
  Terminal,
  TerminalCreate,
  TerminalCreated,
  TerminalEnded,
  TerminalQuery,
  TerminalTicket,
  TerminalTicketCreate,
} from '../../core/protocol/http/terminals.ts'
import { terminalCalls } from '../../core/services.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { operation, sessionIdOf } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'
import { serve } from './serve.ts'

const allow = { users: 'execute' } as const
const exists = 'terminals' as const
const tag = 'terminals' as const

export function terminalRoutes(app: AppInstance, { services: { terminals } }: RouteDependencies): void {
  serve(
    app,
    terminalCalls,
    terminals,
    { noun: exists, tag, read: allow, write: allow },
    {
      list: {
        id: 'listTerminals',
        summary: "List one's own terminal sessions, newest first; an ADMIN's list has everyone's",
        query: TerminalQuery,
        answer: PageOf(Terminal),
      },
      create: {
        id: 'openTerminal',
        summary: 'Open a terminal on a host; its WebSocket is at `path`',
        body: TerminalCreate,
        answer: TerminalCreated,
        created: true,
        errors: ['conflict'],
        audit: { action: 'terminal.open', object: 'terminal' },
      },
      get: { id: 'getTerminal', summary: 'Read a terminal session', answer: Terminal },
      remove: {
        id: 'endTerminal',
        summary: 'End a terminal session, its shell and all of its processes',
        answer: TerminalEnded,
        audit: { action: 'terminal.end', object: 'terminal' },
      },
      ticket: {
        id: 'createTerminalTicket',
        summary: 'Create a single-use ticket for a browser to attach to a session',
        body: TerminalTicketCreate,
        answer: TerminalTicket,
        created: true,
        errors: ['conflict'],
      },
    },
  )
  app.get(
    '/api/terminals/:sessionId/recording',
    operation({
      id: 'getTerminalRecording',
      tag,
      summary: "Download the recording of an ended session, or of one's own",
      allow,
      exists,
      media: {
        'application/x-asciicast': {
          holds: 'asciicast v2: a header, then one event per line. Input is never recorded.',
          example: '{"version":2,"width":80,"height":24}\n[0.120000, "o", "$ "]\n',
        },
      },
      errors: ['conflict'],
      audit: { action: 'terminal.recording', object: 'terminal' },
    }),
    async (request, reply) => {
      const stream = await terminals.recording(userOf(request), sessionIdOf(request))
      return reply.type('application/x-asciicast').send(stream)
    },
  )
}

import { randomInt } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { AnySchema } from 'ajv'
import type {
  FastifyContextConfig,
  FastifyError,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preHandlerHookHandler,
  preParsingHookHandler,
} from 'fastify'
import Fastify from 'fastify'
import { RsmError } from '../../core/errors.ts'
import type { Log } from '../../disk/log.ts'
import { type Clients, createClients } from '../access/client-address.ts'
import type { Credentials } from '../access/credentials.ts'
import type { HttpMetrics } from '../metrics/metrics.ts'
import type { Caller } from '../storage/ports/caller.ts'
import type { Store } from '../storage/ports/store.ts'
import { answerRaw, asRsmError, Envelope, securityHeaders, sendError } from './answers.ts'
import { type Allow, guard, type NoLongerKept } from './auth.ts'
import { createBodyRoom, jsonParser, smallBody } from './bodies.ts'
import { createKnownPaths } from './known-paths.ts'
import { createListener, type Listener } from './listener.ts'
import { bodyAjv, queryValidator, validationError, validator } from './validation.ts'

/** Bytes of a request body (contract §1). */
const bodyLimit = 2 * 1024 * 1024
/** Methods that get 405 on a path without them; any other method is 404. */
const methods = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const requestId = /^[A-Za-z0-9._-]{1,64}$/

interface AppDependencies {
  store: Store
  credentials: Credentials
  /** Credentials of routes with `lastKnown`; `credentials` by default. */
  lastKnown?: Credentials
  log: Log
  /** False while starting or stopping: then everything but health and ready answers 503. */
  accepting(): boolean
  answered: HttpMetrics['answered']
  /** Nothing is removed for its age by default. */
  noLongerKept?: NoLongerKept
  /** Plain HTTP by default. */
  listener?: Listener
  /** No proxy is trusted by default. */
  clients?: Clients
  /** Sends Strict-Transport-Security; false by default. */
  hsts?: boolean
}

/** The HTTP application, without listening: tests inject requests into it. `register` adds the routes. */
export function buildApp(deps: AppDependencies, register: (app: AppInstance) => void) {
  const headersOf = securityHeaders(deps.hsts === true)
  const clients = deps.clients ?? createClients([])
  const app = newApp(deps.listener ?? createListener(null), headersOf)
  const paths = createKnownPaths()
  const bodies = createBodyRoom()
  const levelOf = createRequestLevel()
  app.setValidatorCompiler(({ schema, httpPart }) =>
    httpPart === 'querystring'
      ? queryValidator(schema as AnySchema)
      : validator(bodyAjv, schema as AnySchema),
  )
  app.setSchemaErrorFormatter((errors) => validationError(errors as Parameters<typeof validationError>[0]))
  app.setSerializerCompiler(() => (data) => JSON.stringify(data))
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    ['application/json', 'application/merge-patch+json'],
    { parseAs: 'buffer', bodyLimit },
    jsonParser(app.getDefaultJsonParser('error', 'error')),
  )

  app.addContentTypeParser('application/octet-stream', (request, payload, done) => {
    if (request.routeOptions.config.operation?.bytes) return done(null, payload)
    done(new RsmError('media_type', 'The body must be application/json'))
  })

  const note = (request: FastifyRequest, { statusCode: status }: FastifyReply) => {
    const { id, client: ip, method, route, startedAt, caller } = request
    const elapsed = performance.now() - startedAt
    deps.answered({ method, route, status, seconds: elapsed / 1000 })
    const ms = Math.round(elapsed * 10) / 10
    const user = caller === undefined ? undefined : caller.type === 'user' ? caller.username : nameOf(caller)
    deps.log[levelOf(route, status)]({ requestId: id, user, ip, method, route, status, ms }, 'request')
  }
  const checkAccepting = () => {
    if (!deps.accepting())
      throw new RsmError('unavailable', 'The server is starting or shutting down', { retryAfter: 5 })
  }
  app.addHook('onRoute', (route) => {
    const { config } = route
    if (config?.allow === undefined) throw new Error(`route ${route.url} does not say who may call it`)
    paths.add(route.url, route.method)
    if (config.operation?.created) route.preHandler = answerCreated
    const enter = entrance(route.url, config)
    route.onRequest = [enter, ...[route.onRequest ?? []].flat()]
    if (config.allow.open) route.bodyLimit = smallBody
    // Byte bodies are streamed, not buffered, and have limits of their own.
    if (!config.operation?.bytes)
      route.preParsing = [takeBody(route.bodyLimit ?? bodyLimit), ...[route.preParsing ?? []].flat()]
    if (changesWhatLasts(config, route.method))
      route.preValidation = [
        guard(deps.store, deps.credentials, { allow: config.allow }),
        ...[route.preValidation ?? []].flat(),
      ]
    // Requests of agents are logged in onSend, because onResponse costs as much as a heartbeat's body. Downloads are
    // logged at their end, because they take long.
    const ofAgents = isOfAgents(route.url) && config.operation?.media === undefined
    route.onSend = [
      ...[route.onSend ?? []].flat(),
      (request, reply, _payload, done) => {
        if (ofAgents) note(request, reply)
        if (!deps.accepting()) reply.header('connection', 'close')
        done()
      },
    ]
    if (!ofAgents)
      route.onResponse = [
        ...[route.onResponse ?? []].flat(),
        (request, reply, done) => {
          note(request, reply)
          done()
        },
      ]
  })
  /** Runs after the entrance, because the limit is per caller (contract §1: 401 first). */
  const takeBody =
    (limit: number): preParsingHookHandler =>
    (request, reply, _payload, done) => {
      try {
        done(
          null,
          bodies.enter(request.raw, () => nameOf(request.caller), limit),
        )
      } catch (error) {
        // Close, so that the rest of the body is not read.
        reply.header('connection', 'close')
        done(error as Error)
      }
    }
  /** Runs before all other hooks, so that strangers learn nothing. Every heartbeat runs it: keep it cheap. */
  function entrance(url: string, config: FastifyContextConfig): onRequestHookHandler {
    const credentials = (config.allow?.lastKnown && deps.lastKnown) || deps.credentials
    const admit = guard(deps.store, credentials, config, deps.noLongerKept)
    const isAlways = config.operation?.always === true
    // Answers to a POST are never cached (RFC 9111 §3).
    const headers = { ...headersOf(url), ...(!isOfAgents(url) && { 'cache-control': 'no-store' }) }
    return (request, reply, done) => {
      reply.header('x-request-id', request.id)
      reply.headers(headers)
      // An omitted body counts as empty: missing required fields are reported by name.
      request.body = {}
      request.startedAt = performance.now()
      request.route = url
      request.client = clients.addressOf(request.raw)
      clients.check(request.raw)
      if (!isAlways) checkAccepting()
      admit(request, reply, done)
    }
  }
  app.decorateRequest('route', 'unknown')
  app.decorateRequest('client', '')
  app.decorateRequest('startedAt', 0)
  const enterNowhere = entrance('unknown', {})
  /** Answers 405 with `Allow` to an unsupported method on a known path, for any authenticated caller. */
  const enterOtherwise = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => {
    const path = methods.has(request.method) ? paths.find(request.url) : undefined
    if (path === undefined) return enterNowhere.call(app, request, reply, done)
    entrance(path.url, {}).call(app, request, reply, (error?: Error) => {
      if (error) return done(error)
      const allow = [...path.methods].filter((method) => method !== 'HEAD').join(', ')
      reply.header('allow', allow)
      done(new RsmError('method_not_allowed', `${request.method} is not allowed here; allowed: ${allow}`))
    })
  }
  app.addHook('onRequest', (request, reply, done) => {
    // Routes have their own entrance; this one handles unknown paths.
    if (!request.is404) return done()
    reply.raw.once('finish', () => note(request, reply))
    enterOtherwise(request, reply, done)
  })
  app.addHook('preSerialization', (_request, reply, payload, done) => {
    if (payload instanceof Envelope) return done(null, payload)
    const code = reply.statusCode
    done(null, { code, message: code === 201 ? 'Created' : 'OK', data: payload })
  })
  app.setErrorHandler((thrown: FastifyError | RsmError, request, reply) => {
    const error = asRsmError(thrown, request.routeOptions)
    // Do not wait for the rest of refused bytes, which may be a whole file.
    if (request.routeOptions.config.operation?.bytes && !request.raw.complete)
      reply.header('connection', 'close')
    if (error.code === 'internal')
      deps.log.error({ requestId: request.id, err: error.cause ?? error }, 'request failed')
    return sendError(reply, error)
  })
  app.setNotFoundHandler(async (request: FastifyRequest) => {
    throw new RsmError('not_found', `No such path: ${request.url.split('?')[0] ?? ''}`)
  })
  register(app)
  return app
}

/** Name of a caller in the log, and as the owner of a body. */
function nameOf(caller: Caller | undefined): string {
  if (caller === undefined) return 'anyone'
  return caller.type === 'agent' ? `agent ${caller.agentId}` : `${caller.type} ${caller.id}`
}

/**
 * Whether to check callers again after the body, because they may lose the right while they send it slowly. Agents'
 * reports are exempt: they are the most frequent requests, and the next report replaces them.
 */
const changesWhatLasts = ({ operation }: FastifyContextConfig, method: string | string[]) =>
  operation !== undefined && !['GET', 'HEAD'].includes(String(method)) && !isReport(operation.allow)

const isReport = ({ agent, enrollment }: Allow) => agent === true && enrollment !== true

/** Answers 201 for a created record (contract §1). */
const answerCreated: preHandlerHookHandler = (_request, reply, done) => {
  reply.code(201)
  done()
}

/** Status and message for requests that Node rejects while parsing. */
const clientFaults: Record<string, [number, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers of the request are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request took too long to arrive'],
}

function newApp(listener: Listener, headersOf: ReturnType<typeof securityHeaders>) {
  // Request id for the log and the caller: a process prefix and a counter; it need not be hard to guess. Short,
  // because V8 copies the parts of longer strings when they are first read.
  const process = randomInt(36 ** 5, 36 ** 6).toString(36)
  let requests = 0
  return Fastify({
    logger: false,
    bodyLimit,
    serverFactory: (handler) => listener.create(handler),
    forceCloseConnections: 'idle',
    // Our own hook refuses during a stop: in the envelope, and except for health and ready.
    return503OnClosing: false,
    exposeHeadRoutes: true,
    // Longer than any request line that Node accepts, so that an overlong id is an unknown one (404).
    routerOptions: { maxParamLength: 65_536 },
    genReqId: (request: IncomingMessage) => {
      const given = request.headers['x-request-id']
      return typeof given === 'string' && requestId.test(given) ? given : process + (++requests).toString(36)
    },
    // Malformed path: no hook has run.
    frameworkErrors: (error, request, reply) => {
      const status = error.statusCode ?? 400
      const headers = { 'x-request-id': request.id, ...headersOf(request.url) }
      void (reply as FastifyReply)
        .code(status)
        .headers(headers)
        .send({ code: status, message: error.message })
    },
    clientErrorHandler(error, socket) {
      if (!socket.writable) return
      const [code, message] = clientFaults[error.code] ?? [400, 'The request is not well-formed HTTP']
      answerRaw(socket, code, message)
    },
  }).withTypeProvider<TypeBoxTypeProvider>()
}

export type AppInstance = ReturnType<typeof newApp>

type Level = 'debug' | 'info' | 'warn'

/** Log level of a request; changes are in the audit log. Logs a readiness check only if its result changes. */
export function createRequestLevel(): (route: string, status: number) => Level {
  let wasReady: boolean | null = null
  return (route, status) => {
    if (route === readyPath) {
      const isReady = status < 400
      if (isReady === wasReady) return 'debug'
      wasReady = isReady
      if (isReady) return 'info'
    }
    if (status >= 500) return 'warn'
    return status < 400 || isOfAgents(route) ? 'debug' : 'info'
  }
}

const readyPath = '/api/ready'

/** Whether agents call it every few seconds. */
const isOfAgents = (route: string): boolean => route.startsWith('/api/agent/')

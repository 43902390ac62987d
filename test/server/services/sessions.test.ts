import test from 'ava'
import { sessionsContract } from '../../contracts/sessions.ts'
import { servicesOnStore } from '../../helpers/servers/services.ts'

sessionsContract(test, 'on the store,', servicesOnStore)

package dev.milepost;

import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Method;
import org.aopalliance.intercept.MethodInvocation;
import org.springframework.transaction.interceptor.TransactionInterceptor;

/**
 * Calls of a method through Spring's interceptor for {@code @Transactional}, as a proxy class of Spring makes them. Debian's Spring cannot make proxies of
 * classes.
 */
public final class Intercepted {
    private Intercepted() {}

    /** Calls a method with one argument in the transaction that its annotation requests. */
    public static void call(TransactionInterceptor interceptor, Object target, Class<?> type, String name, Object argument, Runnable proceed) {
        try {
            Method method = java.util.stream.Stream.of(type.getMethods()).filter(one -> one.getName().equals(name)).findFirst().orElseThrow();
            interceptor.invoke(new MethodInvocation() {
                @Override
                public Method getMethod() {
                    return method;
                }

                @Override
                public Object[] getArguments() {
                    return new Object[] {argument};
                }

                @Override
                public Object proceed() {
                    proceed.run();
                    return null;
                }

                @Override
                public Object getThis() {
                    return target;
                }

                @Override
                public AccessibleObject getStaticPart() {
                    return method;
                }
            });
        } catch (RuntimeException | Error error) {
            throw error;
        } catch (Throwable checked) {
            throw new AssertionError(checked);
        }
    }
}

package dev.milepost;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * A call of an SQL function. All arguments are bound as texts or arrays of texts and cast in the statement, because the driver binds texts as
 * {@code varchar}, for which PostgreSQL finds no function.
 */
final class Query {
    private final Connection connection;
    private final String sql;
    private final List<Object> arguments = new ArrayList<>();

    private Query(Connection connection, String sql) {
        this.connection = connection;
        this.sql = sql;
    }

    static Query of(Connection connection, String sql) {
        return new Query(connection, sql);
    }

    /** Adds an argument; its text is that of {@code toString}. */
    Query with(Object argument) {
        arguments.add(argument == null ? null : argument.toString());
        return this;
    }

    /** Adds an array with one element for each item. */
    <T> Query each(List<T> items, Function<T, Object> element) {
        Object[] texts = new Object[items.size()];
        for (int n = 0; n < texts.length; n++) {
            Object value = element.apply(items.get(n));
            texts[n] = value == null ? null : value.toString();
        }
        arguments.add(texts);
        return this;
    }

    /** Reads a row. */
    interface Row<T> {
        T read(ResultSet row) throws SQLException;
    }

    <T> T one(Row<T> reader) {
        return all(reader).get(0);
    }

    <T> List<T> all(Row<T> reader) {
        List<Array> arrays = new ArrayList<>();
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int n = 0; n < arguments.size(); n++) {
                if (arguments.get(n) instanceof Object[] texts) {
                    arrays.add(connection.createArrayOf("text", texts));
                    statement.setArray(n + 1, arrays.get(arrays.size() - 1));
                } else statement.setString(n + 1, (String) arguments.get(n));
            }
            List<T> all = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) all.add(reader.read(rows));
            }
            for (Array array : arrays) array.free();
            return all;
        } catch (SQLException error) {
            throw StoreException.of(error);
        }
    }
}
